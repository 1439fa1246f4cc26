"""Reads and writes dates, times, instants and durations as ISO 8601 text, exact to the unit.

Dates and instants have the years 1 to 9999, as in RFC 3339 and in the calendars of Python and JavaScript; others are
refused. Fractions have all digits of their unit, or are left out when zero.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from framewire.arrow.ranges import Range
from framewire.arrow.types import TICKS

__all__ = [
    "dates_to_text",
    "duration_text",
    "parse_duration",
    "parse_instants",
    "parse_time",
    "parse_timestamp",
    "times_to_text",
    "timestamps_to_text",
    "year_range",
]

_DAY_SECONDS: Final = 86_400
_EPOCH_ORDINAL: Final = dt.date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = dt.date.min.toordinal() - _EPOCH_ORDINAL
"""0001-01-01 in days since 1970-01-01."""
_LAST_DAY: Final = dt.date.max.toordinal() - _EPOCH_ORDINAL
"""9999-12-31."""
_TIME_RE = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?", re.ASCII)
_TIMESTAMP_RE = re.compile(r"(.{19})(?:\.(\d{1,9}))?(Z?|[+-]\d{2}:\d{2})", re.ASCII)
_DURATION_RE = re.compile(r"(-?)PT(-?)(\d{1,20})(?:\.(\d{1,9}))?S", re.ASCII)


def year_range(dtype: pa.DataType) -> Range:
    """Return the stored integers of the years 1 to 9999 for a date or timestamp type; None for other types."""
    if pa.types.is_timestamp(dtype) and dtype.unit != "ns":  # 64 bits of nanoseconds reach from 1677 to 2262
        per_day = _DAY_SECONDS * TICKS[dtype.unit]
    elif pa.types.is_date(dtype):
        per_day = 1 if pa.types.is_date32(dtype) else _DAY_SECONDS * TICKS["ms"]
    else:
        return None
    return _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1


# --- columns to text --------------------------------------------------------------------------------------------------


def dates_to_text(array: pa.Array) -> list[str | None]:
    """Write ``date32`` or ``date64`` values of the years 1 to 9999."""
    return list(array.cast(pa.string()).to_pylist())


def times_to_text(array: pa.Array) -> list[str | None]:
    """Write ``time32`` or ``time64`` values, to the unit. A value outside the day is shown as such, and not read back."""
    return list(_without_zero_fraction(array.cast(pa.string())).to_pylist())


def timestamps_to_text(array: pa.Array) -> list[str | None]:
    """Write instants of the years 1 to 9999: naive ones as wall-clock text, zoned ones in UTC with a ``Z``.

    Text in UTC needs no time zone database.
    """
    text = pc.replace_substring(array.view(pa.timestamp(array.type.unit)).cast(pa.string()), " ", "T")
    text = _without_zero_fraction(text)
    return list((text if array.type.tz is None else pc.binary_join_element_wise(text, "Z", "")).to_pylist())


def _without_zero_fraction(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, r"\.0+$", "")


def duration_text(ticks: int, per_second: int) -> str:
    """Write a duration in seconds (``PT-3.5S``), which are exact; days and months have no fixed length."""
    seconds, fraction = divmod(abs(ticks), per_second)
    sign = "-" if ticks < 0 else ""
    return f"PT{sign}{seconds}.{fraction:0{len(str(per_second)) - 1}d}S" if fraction else f"PT{sign}{seconds}S"


# --- text to columns and ticks ----------------------------------------------------------------------------------------


def parse_instants(values: Sequence[str | None], dtype: pa.DataType) -> pa.Array | None:
    """Parse dates, or timestamps (with a zone where ``dtype`` has one), by Arrow's cast; None where it refuses a value."""
    zoned = getattr(dtype, "tz", None) is not None
    try:
        return pa.array(values, pa.string()).cast(pa.timestamp(dtype.unit, "UTC") if zoned else dtype).view(dtype)
    except (pa.ArrowException, ValueError):
        return None


def parse_timestamp(text: str, dtype: pa.DataType) -> int | None:
    """Return ticks since 1970-01-01 (in UTC where ``dtype`` has a zone), or ``None`` for text that is not exact in it.

    Arrow's cast refuses zeros beyond the digits of the unit, and the first second of the range of nanoseconds.
    """
    match = _TIMESTAMP_RE.fullmatch(text)
    fraction = None if match is None else _fraction(match[2], TICKS[dtype.unit])
    if match is None or fraction is None:
        return None
    seconds = parse_instants([match[1] + match[3]], pa.timestamp("s", dtype.tz))
    return None if seconds is None else seconds[0].value * TICKS[dtype.unit] + fraction


def _fraction(digits: str | None, per_second: int) -> int | None:
    """Return the ticks of a fraction of a second; ``None`` where the unit is too coarse for it."""
    ticks, rest = divmod(int((digits or "0").ljust(9, "0")), 10**9 // per_second)
    return None if rest else ticks


def parse_time(text: str, per_second: int) -> int | None:
    """Return ticks since midnight, or ``None`` for text that is not a time of day, or is finer than the unit."""
    match = _TIME_RE.fullmatch(text)
    fraction = None if match is None else _fraction(match[4], per_second)
    if match is None or fraction is None:
        return None
    hour, minute, second = map(int, match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        return None
    return (hour * 3600 + minute * 60 + second) * per_second + fraction


def parse_duration(text: str, per_second: int) -> int | None:
    """Return ticks, or ``None`` for text that is not ``PT[-]seconds[.fraction]S``, or is finer than the unit."""
    match = _DURATION_RE.fullmatch(text)
    fraction = None if match is None else _fraction(match[4], per_second)
    if match is None or fraction is None:
        return None
    ticks = int(match[3]) * per_second + fraction
    return -ticks if (match[1] == "-") != (match[2] == "-") else ticks
