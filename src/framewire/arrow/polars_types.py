"""Types and values that Polars holds exactly, as measured of polars 2.1, which refuses, alters, panics or aborts on others."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa

from framewire.arrow.types import is_flat

MAX_DIGITS: Final = 38
"""Most digits of a decimal."""
MAX_SECONDS: Final = ((1 << 63) - 1) // 1000
"""Furthest ``timestamp[s]`` or ``duration[s]``: Polars multiplies seconds by 1000, and wraps."""


def exact_type(dtype: pa.DataType) -> pa.DataType | None:
    """The Arrow type that Polars reads in place of a flat type with every value unchanged, or None where there is none.

    ``date64`` would become a Datetime; of time zones, Polars knows the database's names and offsets of whole hours.
    """
    if pa.types.is_decimal(dtype):
        return _decimal(dtype)
    if pa.types.is_date64(dtype):
        return pa.date32()
    if pa.types.is_timestamp(dtype) and not (dtype.tz is None or knows_zone(dtype.tz)):
        return None
    if pa.types.is_fixed_size_binary(dtype) and dtype.byte_width == 0:
        return pa.binary()
    return dtype if is_flat(dtype) else None


def _decimal(dtype: pa.DataType) -> pa.DataType | None:
    """Polars aborts on nested 32- and 64-bit decimals, and reads no 256-bit ones and no scale below 0 or above the precision."""
    scale = max(dtype.scale, 0)
    digits = max(dtype.precision + scale - dtype.scale, scale)
    return pa.decimal128(digits, scale) if digits <= MAX_DIGITS else None


def knows_zone(zone: str) -> bool:
    """Whether Polars, whose copy of the time zone database differs from Python's, knows ``zone``."""
    return zone == "UTC" or _knows_zone(zone)


@lru_cache(maxsize=256)
def _knows_zone(zone: str) -> bool:
    import polars  # only tables with zones other than UTC need it

    if "\0" in zone:  # the import of the C schema would end there
        return False
    try:  # with a row: without one, Polars panics where it would refuse
        polars.from_arrow(pa.table({"x": pa.nulls(1, pa.timestamp("us", zone))}))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException):
        return False
    return True


def exact_range(dtype: pa.DataType) -> tuple[int, int] | None:
    """The least and greatest stored integer of a flat type that Polars keeps, or None where it keeps every valid one."""
    is_span = pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype)
    return (-MAX_SECONDS, MAX_SECONDS) if is_span and dtype.unit == "s" else None
