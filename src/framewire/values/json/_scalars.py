"""JSON values back to Arrow columns without children, and where a value that does not fit came from."""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from framewire.errors import ArgumentError, UnsupportedTypeError
from framewire.values.json._times import UNITS, parse_date, parse_duration, parse_time, parse_timestamp

__all__ = ["Place", "bound_nulls", "build_array", "decode_scalars"]

_types = pa.types
_INTEGER_RE = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DECIMAL_RE = re.compile(r"[+-]?\d{1,80}(\.\d{1,80})?([eE][+-]?\d{1,2})?", re.ASCII)
_NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
MAX_NULL_ROOM: Final = 1 << 24
"""Elements or bytes that the nulls of one fixed-size column may be filled up with."""
_SAFE_FLOAT: Final = 2.0**53
"""A larger whole float may stand for several integers."""


class Place:
    """Where values come from, for errors: the column (and what is inside it) and the row of each value."""

    def __init__(self, name: str, rows: Sequence[int] | None = None) -> None:
        self.name = name
        self.rows = rows

    def inside(self, name: str, rows: Sequence[int] | None) -> Place:
        """The place of values nested in these; ``rows`` says which of these each one is in."""
        if rows is None:
            return Place(name, self.rows)
        return Place(name, rows if self.rows is None else [self.rows[row] for row in rows])

    def fail(self, position: int, value: object, kind: pa.DataType, why: str = "") -> NoReturn:
        """Raise the error for one value: names its column, row and kind, and never the value itself."""
        row = position if self.rows is None else self.rows[position]
        raise ArgumentError(
            f"Column {self.name!r}, row {row}: {_kind_of(value)} {why or 'does not fit'} (type {kind}).",
            hint=_hint(kind),
        )


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "an object"
    return "an array" if isinstance(value, Sequence) else f"a value of type {type(value).__name__}"


def _hint(kind: pa.DataType) -> str:
    forms = (
        (_types.is_boolean, "true or false"),
        (_types.is_integer, "a whole number in the type's range, as a number or as text"),
        (_types.is_floating, 'a number, "NaN", "Infinity" or "-Infinity"'),
        (_types.is_decimal, 'decimal text such as "1.20" within precision and scale'),
        (_types.is_date, 'text such as "2013-01-31"'),
        (_types.is_time, 'text such as "05:00:00"'),
        (
            _types.is_timestamp,
            'text such as "2013-01-31T05:00:00"' + (' with "Z"' if getattr(kind, "tz", None) else ""),
        ),
        (_types.is_duration, 'text such as "PT-3.5S"'),
        (_types.is_struct, "an object with the type's fields"),
        (_types.is_map, 'an array of {"key": ..., "value": ...}'),
        (_types.is_nested, "an array"),
    )
    binary = "binary" in str(kind)
    form = next((text for test, text in forms if test(kind)), "standard base64 text" if binary else "text")
    return f"Expected {form}, or null where the column may be null."


def decode_scalars(values: Sequence[Any], kind: pa.DataType, place: Place) -> pa.Array:
    if _types.is_integer(kind):
        return _integers(values, kind, place)
    if _types.is_floating(kind):
        return _floats(values, kind, place)
    if _types.is_decimal(kind):
        return build_array([_decimal(v, i, kind, place) for i, v in enumerate(values)], values, kind, place)
    if _types.is_temporal(kind):
        return _temporal(values, kind, place)
    if "binary" in str(kind):
        if _types.is_fixed_size_binary(kind):
            bound_nulls(values, kind.byte_width, kind, place)
        return build_array([_bytes(v, i, kind, place) for i, v in enumerate(values)], values, kind, place)
    wanted = {_types.is_null: type(None), _types.is_boolean: bool}
    classes = {type(None), next((cls for test, cls in wanted.items() if test(kind)), str)}
    if not set(map(type, values)) <= classes:
        position = next(i for i, value in enumerate(values) if type(value) not in classes)
        place.fail(position, values[position], kind)
    return build_array(list(values), values, kind, place)


def build_array(converted: list[Any], values: Sequence[Any], kind: pa.DataType, place: Place) -> pa.Array:
    """``pa.array``, and on refusal the row that it refused, found by halving."""

    def refused(first: int, last: int) -> bool:
        try:
            pa.array(converted[first:last], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return True
        return False

    try:
        return pa.array(converted, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        first, last = 0, len(converted)
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if refused(first, middle) else (middle, last)
    place.fail(first, values[first], kind)


def bound_nulls(values: Sequence[Any], width: int, kind: pa.DataType, place: Place) -> None:
    """Refuse nulls that would take far more room than their text did: the type may come from outside, too."""
    if values.count(None) * width > MAX_NULL_ROOM:
        place.fail(values.index(None), None, kind, f"takes {width} times the room here, which is too much in all")


def _integers(values: Sequence[Any], kind: pa.DataType, place: Place) -> pa.Array:
    if not set(map(type, values)) <= {int, type(None)}:
        values = [_integer(value, i, kind, place) for i, value in enumerate(values)]
    bits = kind.bit_width
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if _types.is_signed_integer(kind) else (0, (1 << bits) - 1)
    present = [value for value in values if value is not None]
    if present and (min(present) < low or max(present) > high):
        position = next(i for i, value in enumerate(values) if value is not None and not low <= value <= high)
        place.fail(position, values[position], kind, "is out of range")
    return pa.array(values, kind)


def _integer(value: Any, position: int, kind: pa.DataType, place: Place) -> int | None:
    if value is None or type(value) is int:
        return value
    if type(value) is float and value.is_integer() and abs(value) <= _SAFE_FLOAT:
        return int(value)
    if type(value) is str and _INTEGER_RE.fullmatch(value):
        return int(value)
    place.fail(position, value, kind)


def _floats(values: Sequence[Any], kind: pa.DataType, place: Place) -> pa.Array:
    if not set(map(type, values)) <= {float, type(None)}:
        values = [_float(value, i, kind, place) for i, value in enumerate(values)]
    wide = pa.array(values, pa.float64())
    if _types.is_float64(kind):
        return wide
    missing = wide.is_null().to_numpy(zero_copy_only=False)
    exact = wide.fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = exact.astype(kind.to_pandas_dtype())
    lost = np.flatnonzero(np.isinf(narrow) & ~np.isinf(exact))
    if len(lost):
        place.fail(int(lost[0]), values[int(lost[0])], kind)
    return pa.array(narrow, kind, mask=missing, from_pandas=False)


def _float(value: Any, position: int, kind: pa.DataType, place: Place) -> float | None:
    if value is None or type(value) is float:
        return value
    if type(value) is int and abs(value) < 1 << 1000 and int(float(value)) == value:
        return float(value)
    if type(value) is str and value in _NON_FINITE:
        return _NON_FINITE[value]
    place.fail(position, value, kind)


def _decimal(value: Any, position: int, kind: pa.DataType, place: Place) -> Decimal | None:
    if value is None:
        return None
    if type(value) is int and abs(value) < 10**80:
        return Decimal(value)
    if type(value) is str and _DECIMAL_RE.fullmatch(value):
        return Decimal(value)
    place.fail(position, value, kind)


def _bytes(value: Any, position: int, kind: pa.DataType, place: Place) -> bytes | None:
    if value is None:
        return None
    if type(value) is str:
        try:
            data = binascii.a2b_base64(value, strict_mode=True)
        except ValueError:  # binascii.Error, or text that is not ASCII
            place.fail(position, value, kind)
        if b64encode(data).decode("ascii") == value:  # no two texts for the same bytes
            return data
    place.fail(position, value, kind)


def _parser(kind: pa.DataType) -> tuple[Callable[[str], int | None], pa.DataType]:
    """Reads one text as ticks; the integer type that the ticks are stored as."""
    if _types.is_date32(kind):
        return parse_date, pa.int32()
    if _types.is_date64(kind):
        return (lambda text: None if (days := parse_date(text)) is None else days * 86_400_000), pa.int64()
    per_second = UNITS.get(getattr(kind, "unit", ""), 0)
    if _types.is_time(kind):
        return lambda text: parse_time(text, per_second), pa.int32() if _types.is_time32(kind) else pa.int64()
    if _types.is_timestamp(kind):
        return lambda text: parse_timestamp(text, per_second, zoned=kind.tz is not None), pa.int64()
    if _types.is_duration(kind):
        return lambda text: parse_duration(text, per_second), pa.int64()
    raise UnsupportedTypeError(
        f"Type {kind} has no JSON form.", hint="Publish months, days and nanoseconds as columns."
    )


def _temporal(values: Sequence[Any], kind: pa.DataType, place: Place) -> pa.Array:
    parse, storage = _parser(kind)
    if (_types.is_date(kind) or _types.is_timestamp(kind)) and set(map(type, values)) <= {str, type(None)}:
        try:  # the kernel reads what almost every column holds, and refuses all that it does not read exactly
            plain = kind if not getattr(kind, "tz", None) else pa.timestamp(kind.unit, "UTC")
            return pa.array(values, pa.string()).cast(plain).view(kind)
        except (pa.ArrowException, ValueError):
            pass  # below, value by value: years beyond four digits, and the row of what is wrong
    ticks = [_ticks(parse, value, i, kind, place) for i, value in enumerate(values)]
    return build_array(ticks, values, storage, place).view(kind)


def _ticks(parse: Callable[[str], int | None], value: Any, position: int, kind: Any, place: Place) -> int | None:
    if value is None:
        return None
    ticks = parse(value) if type(value) is str else None
    if ticks is None:
        place.fail(position, value, kind)
    return ticks
