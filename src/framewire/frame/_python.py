"""pa.Table -> list[dict] of exact Python values, by one written rule that does not depend on what is installed."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from framewire.arrow.types import is_flat
from framewire.frame._exact import FormLimits, day_range, exact, unsupported_value

__all__ = ["to_rows"]


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Each row as a dict, keys in column order.

    Numbers, text, bytes, booleans and nulls are Python's own; decimals ``Decimal``; times ``date``, ``time``,
    ``datetime`` (aware, with a ``zoneinfo.ZoneInfo``, where the column has a zone) and ``timedelta``; lists lists;
    structs dicts; maps lists of ``(key, value)`` tuples, so that order and repeated keys survive; dictionaries their
    values; extension types their storage's values.

    Raises:
        UnsupportedTypeError: Python has no counterpart of a column's type.
        UnsupportedValueError: A value has no exact counterpart: nanoseconds that are not a whole microsecond, years
            outside 1 to 9999, a time of day beyond 24 hours.
    """
    names = table.column_names
    columns = [_values(column, field) for column, field in zip(table.columns, table.schema, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _flat_type(dtype: pa.DataType) -> pa.DataType | None:
    # datetime counts microseconds. pyarrow would give pd.Timestamp for nanoseconds where pandas is installed, and cut
    # times of day; the checked cast lets through what is exact, and only that, everywhere.
    if pa.types.is_timestamp(dtype) and dtype.unit == "ns":
        return pa.timestamp("us", dtype.tz)
    if pa.types.is_duration(dtype) and dtype.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time(dtype) and dtype.unit == "ns":
        return pa.time64("us")
    if pa.types.is_date64(dtype):
        return pa.date32()
    return dtype if is_flat(dtype) else None


_PYTHON: Final = FormLimits("Python", _flat_type, day_range, lambda dtype: True)


def _values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    safe = exact(column, field, _PYTHON)
    values = _listed(safe)
    if values is None:
        raise unsupported_value(safe, field, _PYTHON, lambda part: _listed(part) is None)
    return values


def _listed(column: pa.ChunkedArray) -> list[Any] | None:
    """Python values, or None where a value has none (year outside 1 to 9999, span beyond timedelta, unknown zone)."""
    try:
        values: list[Any] = column.to_pylist()
    except (ArithmeticError, ValueError):  # OverflowError and decimal.InvalidOperation among them
        return None
    return values
