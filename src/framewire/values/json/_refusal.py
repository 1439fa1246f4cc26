"""The error for a JSON value that does not fit its column's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import pyarrow as pa

from framewire.errors import ArgumentError
from framewire.values.location import ValueLocation

_types = pa.types
_YEARS: Final = "of the years 1 to 9999 (send others as Arrow, or as integers)"


def fail(location: ValueLocation, position: int, value: object, kind: pa.DataType, why: str = "") -> NoReturn:
    """Raise the error for one value: names its column, row and kind, and never the value itself."""
    raise ArgumentError(
        f"{location.describe(position)}: {_kind_of(value)} {why or 'does not fit'} (type {kind}).", hint=_hint(kind)
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
        (_types.is_date, f'text such as "2013-01-31" {_YEARS}'),
        (_types.is_time, 'text such as "05:00:00"'),
        (
            _types.is_timestamp,
            f'text such as "2013-01-31T05:00:00{"Z" if getattr(kind, "tz", None) else ""}" {_YEARS}',
        ),
        (_types.is_duration, 'text such as "PT-3.5S"'),
        (_types.is_struct, "an object with the type's fields"),
        (_types.is_map, 'an array of {"key": ..., "value": ...}'),
        (_types.is_nested, "an array"),
    )
    binary = "binary" in str(kind)
    form = next((text for test, text in forms if test(kind)), "standard base64 text" if binary else "text")
    return f"Expected {form}, or null where the column may be null."
