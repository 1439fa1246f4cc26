"""Builds Arrow arrays of instants, times and durations (datetime, pandas, numpy): exact, or refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from framewire.values.location import ValueLocation, name_of

_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_NS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds in Arrow's units."""
_LONGER: Final = {"m": 60 * 10**9, "h": 3600 * 10**9, "D": 86400 * 10**9, "W": 7 * 86400 * 10**9}
"""Nanoseconds in numpy's longer units of fixed length."""
_NAT: Final = np.iinfo(np.int64).min
_UTC: Final = "UTC"
_ZONE_HINT: Final = "Bring them to one zone first, for example value.astimezone(datetime.timezone.utc)."


def zone_of(tz: dt.tzinfo) -> tuple[str, str] | None:
    """Return a time zone's identity and Arrow's name for it, or None where it has no name.

    A zone with a key of the time zone database keeps it. A fixed offset becomes UTC, which holds the same instants:
    Polars does not read offsets.
    """
    for attribute in ("key", "zone"):  # zoneinfo; pytz
        if isinstance(key := getattr(tz, attribute, None), str):
            return key, key
    try:
        offset = tz.utcoffset(None)
    except Exception:  # a tzinfo of the caller's own
        return None
    if offset is None:
        return None
    return (str(offset) if offset else _UTC), _UTC


def build_datetimes(values: Sequence[Any], location: ValueLocation) -> Any:
    """``timestamp[us]``, ``timestamp[ns]`` where a value has nanoseconds; homogeneous numpy values keep their unit."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {np.datetime64}:
        return _build_numpy(values, location, "datetime64")
    if kinds == {dt.datetime}:
        return pa.array(values, pa.timestamp("us", None if _all_naive(values) else _common_zone(values, location)))
    zone = _common_zone(values, location)
    return _exact(values, location, _instant, lambda unit: pa.timestamp(unit, zone))


def build_durations(values: Sequence[Any], location: ValueLocation) -> Any:
    """``duration[us]``, ``duration[ns]`` where a value has nanoseconds; homogeneous numpy values keep their unit."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {np.timedelta64}:
        return _build_numpy(values, location, "timedelta64")
    if kinds == {dt.timedelta}:
        try:
            return pa.array(values, pa.duration("us"))
        except pa.ArrowInvalid:  # beyond 292,471 years: the exact path names the row
            pass
    return _exact(values, location, _length, pa.duration)


def build_times(values: Sequence[Any], location: ValueLocation) -> Any:
    """``time64[us]``. A time with a zone is refused: Arrow has no such type."""
    for at, value in enumerate(values):
        if value is not None and value.tzinfo is not None:
            raise location.refuse(
                at, dt.time, "a time with a time zone", "Use a datetime, or value.replace(tzinfo=None)."
            )
    return pa.array(values, pa.time64("us"))


def _all_naive(values: Sequence[Any]) -> bool:
    """Whether no value has a time zone: the common case, decided without a Python loop."""
    return not any(map(attrgetter("tzinfo"), filter(None, values)))


def _common_zone(values: Sequence[Any], location: ValueLocation) -> str | None:
    """Return the one zone of all values, as Arrow names it; None where all are naive."""
    # By identity: some tzinfo classes are not hashable. Each object is read once, with its first row.
    seen: dict[int, tuple[dt.tzinfo | None, int]] = {}
    for at, value in enumerate(values):
        if value is not None:
            tz = getattr(value, "tzinfo", None)
            if id(tz) not in seen:
                seen[id(tz)] = (tz, at)
    first: tuple[str, str] | None = None
    for count, (tz, at) in enumerate(seen.values()):
        zone = ("", "") if tz is None else zone_of(tz)
        kind = type(values[at])
        if zone is None:
            hint = "Use a zoneinfo.ZoneInfo with a key, or value.astimezone(datetime.timezone.utc)."
            raise location.refuse(at, kind, f"a time zone without a name ({name_of(type(tz))})", hint)
        if count and first is not None and zone[0] != first[0]:
            what = "with and without time zone" if "" in (zone[0], first[0]) else "of different time zones"
            raise location.refuse(at, kind, f"the column holds datetimes {what}", _ZONE_HINT)
        first = first or zone
    return (first[1] if first else None) or None


def _exact(
    values: Sequence[Any], location: ValueLocation, count: Callable[..., int | None], make: Callable[[str], Any]
) -> Any:
    """Count nanoseconds as Python integers, then store them in microseconds where that is exact."""
    counts = [None if value is None else count(value, at, location) for at, value in enumerate(values)]
    unit = "ns" if any(c is not None and c % 1000 for c in counts) else "us"
    per_unit = _NS[unit]
    scaled = [None if c is None else c // per_unit for c in counts]
    for at, c in enumerate(scaled):
        if c is not None and not _NAT < c < -_NAT:
            why = f"{name_of(type(values[at]))} outside the range of {make(unit)}"
            raise location.refuse(at, type(values[at]), why, "Leave out the nanoseconds, or use text.")
    return pa.array(scaled, pa.int64()).view(make(unit))


def _instant(value: Any, at: int, location: ValueLocation) -> int | None:
    """Return nanoseconds since 1970 in UTC, or on the wall clock for a naive value; None for not-a-time."""
    if isinstance(value, np.datetime64):
        unit, step = np.datetime_data(value.dtype)
        if np.isnat(value):
            return None
        if unit == "D":
            raise location.refuse(at, np.datetime64, "a date beside datetimes", "Make them all dates or all datetimes.")
        if unit == "W":  # of fixed length, but it says less than a day does
            raise _bad_unit(value, at, location)
        return _numpy_count(value, unit, step, at, location)
    if (exact := getattr(value, "asm8", None)) is not None:  # pandas' Timestamp, in UTC where it has a zone
        return _instant(exact, at, location)
    offset = value.utcoffset() or dt.timedelta(0)
    microseconds: int = ((value.replace(tzinfo=None) - _EPOCH) - offset) // _MICROSECOND
    return microseconds * 1000


def _length(value: Any, at: int, location: ValueLocation) -> int | None:
    """Return the nanoseconds of a duration; None for not-a-time."""
    exact = value if isinstance(value, np.timedelta64) else getattr(value, "asm8", None)
    if exact is None:
        microseconds: int = value // _MICROSECOND
        return microseconds * 1000
    if np.isnat(exact):
        return None
    unit, step = np.datetime_data(exact.dtype)
    return _numpy_count(exact, unit, step, at, location)


def _numpy_count(value: Any, unit: str, step: int, at: int, location: ValueLocation) -> int:
    per_unit = _NS.get(unit) or _LONGER.get(unit)
    if per_unit is None:
        raise _bad_unit(value, at, location)
    return int(value.astype(np.int64)) * step * per_unit


def _bad_unit(value: Any, at: int, location: ValueLocation) -> Exception:
    kind = f"numpy.{value.dtype}"
    return location.refuse(at, kind, f"a {kind}, a unit without a form on the wire", "Use D, s, ms, us or ns.")


def _build_numpy(values: Sequence[Any], location: ValueLocation, kind: str) -> Any:
    """Keep the unit of scalars that share one; convert several, or longer ones, to the unit that holds all exactly."""
    units = {np.datetime_data(v.dtype) for v in values if v is not None and not np.isnat(v)}
    is_instant = kind == "datetime64"
    if not units:
        return pa.nulls(len(values), pa.timestamp("us") if is_instant else pa.duration("us"))
    unit, step = next(iter(units))
    kept = (*_NS, "D") if is_instant else tuple(_NS)
    if len(units) == 1 and step == 1 and unit in kept:
        nat = getattr(np, kind)("NaT")
        return pa.array(np.array([nat if v is None else v for v in values], dtype=f"{kind}[{unit}]"))
    if is_instant:
        return _exact(values, location, _instant, pa.timestamp)
    return _exact(values, location, _length, pa.duration)
