"""pa.Table -> list[dict] of exact Python values, by one written rule, whatever else is installed."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from framewire.frame._exact import Target, clock, exact, is_plain, refused_value

__all__ = ["to_rows"]

_t = pa.types


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Each row as a dict, keys in column order.

    Numbers, text, bytes, booleans and nulls are Python's own; decimals ``Decimal``; times ``date``, ``time``,
    ``datetime`` (aware, with a ``zoneinfo.ZoneInfo``, where the column has a zone) and ``timedelta``; lists lists;
    structs dicts; maps lists of ``(key, value)`` tuples, so that order and repeated keys survive; dictionaries their
    values; extension types their storage's values.

    Raises:
        UnsupportedTypeError: Python has no counterpart of a column's type.
        UnsupportedValueError: A value has no exact counterpart: nanoseconds that are no whole microsecond, years
            outside 1 to 9999, a time of day beyond 24 hours.
    """
    names = table.column_names
    columns = [_values(column, field) for column, field in zip(table.columns, table.schema, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _leaf_type(type_: pa.DataType) -> pa.DataType | None:
    # datetime counts microseconds. pyarrow would give pd.Timestamp for nanoseconds where pandas is installed, and cut
    # times of day; the checked cast lets through what is exact, and only that, everywhere.
    if _t.is_timestamp(type_) and type_.unit == "ns":
        return pa.timestamp("us", type_.tz)
    if _t.is_duration(type_) and type_.unit == "ns":
        return pa.duration("us")
    if _t.is_time(type_) and type_.unit == "ns":
        return pa.time64("us")
    if _t.is_date64(type_):
        return pa.date32()
    return type_ if is_plain(type_) else None


_PYTHON: Final = Target("Python", _leaf_type, clock, lambda type_: True)


def _values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    safe = exact(column, field, _PYTHON)
    values = _listed(safe)
    if values is None:
        raise refused_value(safe, field, _PYTHON, lambda part: _listed(part) is None)
    return values


def _listed(column: pa.ChunkedArray) -> list[Any] | None:
    """Python values, or None where a value has none (year outside 1 to 9999, span beyond timedelta, unknown zone)."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return None
    return values
