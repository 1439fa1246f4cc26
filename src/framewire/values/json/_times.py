"""ISO 8601 text of dates, times, instants and durations as integers of their unit, where no pyarrow kernel is exact.

Years outside 0..9999 carry a sign and at least six digits (``+012013-01-01``, ``-000044-03-15``; year 0 is 1 BC), as in
ECMAScript. Fractions have all digits of their unit, or are left out when zero.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "UNITS",
    "date_text",
    "dates_to_text",
    "duration_text",
    "parse_date",
    "parse_duration",
    "parse_time",
    "parse_timestamp",
    "times_to_text",
    "timestamps_to_text",
]

UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks per second."""

_DAY_SECONDS: Final = 86_400
_FIRST_DAY: Final = -719_528
"""0000-01-01 in days since 1970-01-01: the first that four digits can write."""
_LAST_DAY: Final = 2_932_896
"""9999-12-31."""
_DATE = r"(\d{4}|[+-]\d{6,12})-(\d{2})-(\d{2})"
_TIME = r"(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?"
_DATE_RE = re.compile(_DATE, re.ASCII)
_TIME_RE = re.compile(_TIME, re.ASCII)
_TIMESTAMP_RE = re.compile(rf"{_DATE}[T ]{_TIME}(Z|[+-]\d{{2}}:\d{{2}})?", re.ASCII)
_DURATION_RE = re.compile(r"(-?)PT(-?)(\d{1,20})(?:\.(\d{1,9}))?S", re.ASCII)
_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


# --- days and the calendar --------------------------------------------------------------------------------------------


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day in the proleptic Gregorian calendar, for any number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def _days(year: int, month: int, day: int) -> int | None:
    """The inverse of ``_civil``; ``None`` for a day that is not in the calendar."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] or (month == 2 and day == 29 and not leap):
        return None
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_text(days: int) -> str:
    """One date, for any number of days."""
    year, month, day = _civil(days)
    return f"{year:04d}-{month:02d}-{day:02d}" if 0 <= year <= 9999 else f"{year:+07d}-{month:02d}-{day:02d}"


def _seconds_text(ticks: int, per_second: int) -> str:
    """``HH:MM:SS`` and the fraction, for ticks within a day."""
    seconds, fraction = divmod(ticks, per_second)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:0{len(str(per_second)) - 1}d}" if fraction else text


# --- columns to text --------------------------------------------------------------------------------------------------


def _within(ticks: Any, first: int, last: int) -> bool:
    """Whether all values lie in ``first .. last``; an empty or null column does."""
    bounds = pc.min_max(ticks).as_py()
    return bounds["min"] is None or (first <= bounds["min"] and bounds["max"] <= last)


def dates_to_text(array: pa.Array) -> list[str | None]:
    """``date32`` (days) or ``date64`` (milliseconds)."""
    days = array.view(pa.int32()) if pa.types.is_date32(array.type) else pc.divide(array.view(pa.int64()), 86_400_000)
    if _within(days, _FIRST_DAY, _LAST_DAY):
        return list(array.cast(pa.string()).to_pylist())
    return [None if day is None else date_text(day) for day in days.to_pylist()]


def times_to_text(array: pa.Array) -> list[str | None]:
    """``time32`` or ``time64``, to the unit. What lies outside a day is shown as such, and not decoded again."""
    per_second = UNITS[array.type.unit]
    ticks = array.view(pa.int32() if pa.types.is_time32(array.type) else pa.int64())
    if not _within(ticks, 0, _DAY_SECONDS * per_second - 1):
        return [None if tick is None else _seconds_text(tick, per_second) for tick in ticks.to_pylist()]
    return list(pc.replace_substring_regex(array.cast(pa.string()), r"\.0+$", "").to_pylist())


def timestamps_to_text(array: pa.Array) -> list[str | None]:
    """Naive wall-clock text; zoned instants in UTC with a ``Z``, so that no time zone database is needed."""
    unit, suffix = array.type.unit, "Z" if array.type.tz is not None else ""
    day = _DAY_SECONDS * UNITS[unit]
    if _within(array.view(pa.int64()), _FIRST_DAY * day, (_LAST_DAY + 1) * day - 1):
        text = pc.replace_substring(array.view(pa.timestamp(unit)).cast(pa.string()), " ", "T")
        text = pc.replace_substring_regex(text, r"\.0+$", "")
        return list((pc.binary_join_element_wise(text, suffix, "") if suffix else text).to_pylist())
    return [
        None if ticks is None else f"{date_text(ticks // day)}T{_seconds_text(ticks % day, UNITS[unit])}{suffix}"
        for ticks in array.view(pa.int64()).to_pylist()
    ]


def duration_text(ticks: int, per_second: int) -> str:
    """``PT-3.5S``: seconds only, which are exact, where days or months would have to be defined first."""
    seconds, fraction = divmod(abs(ticks), per_second)
    sign = "-" if ticks < 0 else ""
    return f"PT{sign}{seconds}.{fraction:0{len(str(per_second)) - 1}d}S" if fraction else f"PT{sign}{seconds}S"


# --- text to ticks ----------------------------------------------------------------------------------------------------


def _fraction(digits: str | None, per_second: int) -> int | None:
    """Ticks of a fraction of a second; ``None`` where the unit is too coarse for it."""
    ticks, rest = divmod(int((digits or "0").ljust(9, "0")), 10**9 // per_second)
    return None if rest else ticks


def _time_ticks(hour: str, minute: str, second: str, digits: str | None, per_second: int) -> int | None:
    fraction = _fraction(digits, per_second)
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59 or fraction is None:
        return None
    return (int(hour) * 3600 + int(minute) * 60 + int(second)) * per_second + fraction


def parse_date(text: str) -> int | None:
    """Days since 1970-01-01, or ``None`` for text that is no date."""
    match = _DATE_RE.fullmatch(text)
    return None if match is None else _days(int(match[1]), int(match[2]), int(match[3]))


def parse_time(text: str, per_second: int) -> int | None:
    """Ticks since midnight, or ``None`` for text that is no time, or finer than the unit."""
    match = _TIME_RE.fullmatch(text)
    return None if match is None else _time_ticks(match[1], match[2], match[3], match[4], per_second)


def parse_timestamp(text: str, per_second: int, *, zoned: bool) -> int | None:
    """Ticks since 1970-01-01 (in UTC if ``zoned``), or ``None``: a zone must be there exactly when it is ``zoned``."""
    match = _TIMESTAMP_RE.fullmatch(text)
    if match is None or (match[8] is not None) != zoned:
        return None
    days = _days(int(match[1]), int(match[2]), int(match[3]))
    ticks = _time_ticks(match[4], match[5], match[6], match[7], per_second)
    if days is None or ticks is None:
        return None
    offset = 0
    if zoned and match[8] != "Z":
        hours, minutes = int(match[8][1:3]), int(match[8][4:6])
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 3600 + minutes * 60) * (-1 if match[8][0] == "-" else 1)
    return (days * _DAY_SECONDS - offset) * per_second + ticks


def parse_duration(text: str, per_second: int) -> int | None:
    """Ticks, or ``None`` for text that is not ``PT[-]seconds[.fraction]S``, or finer than the unit."""
    match = _DURATION_RE.fullmatch(text)
    fraction = None if match is None else _fraction(match[4], per_second)
    if match is None or fraction is None:
        return None
    ticks = int(match[3]) * per_second + fraction
    return -ticks if (match[1] == "-") != (match[2] == "-") else ticks
