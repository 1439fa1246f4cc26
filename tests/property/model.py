"""A naive model of what columns hold: Python values that do not depend on the form a table is in, one value at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

_t = pa.types
_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH: Final = dt.datetime(1970, 1, 1)
_DAY: Final = 86_400 * 10**9
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: what Python's calendar has."""


def of_table(table: pa.Table) -> dict[str, list[Any]]:
    """Each column of an Arrow table as model values."""
    return {name: [_of_scalar(scalar) for scalar in table.column(name)] for name in table.column_names}


def of_rows(rows: list[dict[str, Any]], schema: pa.Schema) -> dict[str, list[Any]]:
    """The same of rows in the form that a consumer receives; the schema tells maps from lists."""
    return {field.name: [_of_python(row[field.name], field.type) for row in rows] for field in schema}


def _of_scalar(scalar: Any) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if _t.is_dictionary(kind):
        return _of_scalar(scalar.value)
    if _t.is_struct(kind):
        return {name: _of_scalar(value) for name, value in scalar.items()}
    if _t.is_map(kind):
        return ("map", [(_of_scalar(entry[0]), _of_scalar(entry[1])) for entry in scalar.values])
    if _t.is_nested(kind):
        return [_of_scalar(value) for value in scalar.values]
    if _t.is_date(kind):
        return ("date", scalar.value if _t.is_date32(kind) else scalar.value // 86_400_000)
    if _t.is_temporal(kind):
        return (_name_of(kind), scalar.value * _NANOSECONDS[kind.unit])
    return _of_plain(scalar.as_py())


def _name_of(kind: pa.DataType) -> str:
    if _t.is_timestamp(kind):
        return "naive" if kind.tz is None else "zoned"
    return "clock" if _t.is_time(kind) else "span"


def _of_plain(value: Any) -> Any:
    """Values that Python has too. What is equal there and not the same is told apart by a name."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, (int, str, bytes)):
        return value
    return ("decimal", value)


def _of_python(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if _t.is_dictionary(kind):
        return _of_python(value, kind.value_type)
    if _t.is_struct(kind):
        return {field.name: _of_python(value[field.name], field.type) for field in kind}
    if _t.is_map(kind):
        return ("map", [(_of_python(key, kind.key_type), _of_python(item, kind.item_type)) for key, item in value])
    if _t.is_nested(kind):
        return [_of_python(item, kind.value_type) for item in value]
    if isinstance(value, dt.datetime):
        since = value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or dt.timedelta(0))
        return ("zoned" if value.tzinfo else "naive", _nanoseconds(since))
    if isinstance(value, dt.date):
        return ("date", (value - _EPOCH.date()).days)
    if isinstance(value, dt.time):
        assert value.tzinfo is None
        return ("clock", _nanoseconds(dt.datetime.combine(_EPOCH, value) - _EPOCH))
    return ("span", _nanoseconds(value)) if isinstance(value, dt.timedelta) else _of_plain(value)


def _nanoseconds(span: dt.timedelta) -> int:
    return ((span.days * 86_400 + span.seconds) * 10**6 + span.microseconds) * 1000


# --- what does not cross ----------------------------------------------------------------------------------------------


def _leaves(scalar: Any) -> Iterator[Any]:
    """The innermost scalars that are shown."""
    kind = scalar.type
    if not scalar.is_valid:
        return
    if _t.is_dictionary(kind):
        yield from _leaves(scalar.value)
    elif _t.is_struct(kind):
        for _, value in scalar.items():
            yield from _leaves(value)
    elif _t.is_map(kind):
        for entry in scalar.values:
            yield from _leaves(entry[0])
            yield from _leaves(entry[1])
    elif _t.is_nested(kind):
        for value in scalar.values:
            yield from _leaves(value)
    else:
        yield scalar


def leaves(table: pa.Table) -> Iterator[Any]:
    """The innermost scalars of a table, of what is shown."""
    for column in table.columns:
        for scalar in column:
            yield from _leaves(scalar)


def is_refused(table: pa.Table) -> bool:
    """Whether the types page says that publishing refuses a value: seconds and days that are too far."""
    limit = (2**63 - 1) // 1000
    for leaf in leaves(table):
        if (_t.is_timestamp(leaf.type) or _t.is_duration(leaf.type)) and leaf.type.unit == "s":
            if abs(leaf.value) > limit:
                return True
        elif _t.is_date64(leaf.type) and not -(2**31) <= leaf.value // 86_400_000 < 2**31:
            return True
    return False


def python_holds(table: pa.Table) -> bool | None:
    """Whether the frames page says that ``list[dict]`` holds all values; None at the edges of the calendar, where zones matter."""
    edge = False
    for leaf in leaves(table):
        kind = leaf.type
        if not _t.is_temporal(kind):
            continue
        name, ticks = _of_scalar(leaf)
        inside = _FIRST_DAY <= ticks <= _LAST_DAY if name == "date" else ticks % 1000 == 0
        if _t.is_timestamp(kind):
            inside = inside and _FIRST_DAY * _DAY <= ticks < (_LAST_DAY + 1) * _DAY
            near = min(abs(ticks - _FIRST_DAY * _DAY), abs(ticks - (_LAST_DAY + 1) * _DAY)) <= _DAY
            edge = edge or (name == "zoned" and near)
        if _t.is_duration(kind):
            microseconds = ticks // 1000
            inside = inside and -999_999_999 * 86_400 * 10**6 <= microseconds < 10**9 * 86_400 * 10**6
        if not inside:
            return None if edge else False
    return None if edge else True


def json_holds(table: pa.Table) -> bool:
    """Whether every date and instant is of the years 1 to 9999, which the JSON form has."""
    for leaf in leaves(table):
        if _t.is_date(leaf.type) or _t.is_timestamp(leaf.type):
            name, ticks = _of_scalar(leaf)
            if not _FIRST_DAY <= (ticks if name == "date" else ticks // _DAY) <= _LAST_DAY:
                return False
    return True


def python_overflows(table: pa.Table) -> bool:
    """Whether a span that ``timedelta`` holds is beyond 64 bits of microseconds."""
    return any(
        not -(2**63) <= leaf.value * _NANOSECONDS[leaf.type.unit] // 1000 < 2**63
        for leaf in leaves(table)
        if _t.is_duration(leaf.type)
    )


def without_maps(value: Any) -> Any:
    """Maps as the lists of entries that a tool's author writes in rows."""
    if isinstance(value, dict):
        return {key: without_maps(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_maps(item) for item in value]
    if isinstance(value, tuple) and value[0] == "map":
        return [{"key": without_maps(key), "value": without_maps(item)} for key, item in value[1]]
    return value
