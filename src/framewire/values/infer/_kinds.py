"""Classifies Python types by kind of value: the first half of the rule in ``docs/reference/types.md``."""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np


class ValueKind(Enum):
    """A kind of value. A column holds one kind (or integers beside floats or Decimals)."""

    NULL = "null"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    DURATION = "duration"
    LIST = "list"
    STRUCT = "struct"
    MEMBER = "enum member"


Plain: TypeAlias = "Callable[[Any], Any] | None"
"""Converts a value of a subclass or a foreign scalar to the plain Python value; None where it is plain already."""

EXACT: Final[Mapping[type, ValueKind]] = {
    type(None): ValueKind.NULL,
    bool: ValueKind.BOOL,
    int: ValueKind.INT,
    float: ValueKind.FLOAT,
    Decimal: ValueKind.DECIMAL,
    str: ValueKind.TEXT,
    bytes: ValueKind.BYTES,
    dt.date: ValueKind.DATE,
    dt.datetime: ValueKind.DATETIME,
    dt.time: ValueKind.TIME,
    dt.timedelta: ValueKind.DURATION,
    list: ValueKind.LIST,
    tuple: ValueKind.LIST,
    dict: ValueKind.STRUCT,
}
"""The types whose values need no conversion."""

_SUBCLASSES: Final[tuple[tuple[Any, ValueKind, Plain], ...]] = (
    # Unbound methods of the base, so that a subclass's own __int__ or __str__ cannot change the value.
    (int, ValueKind.INT, int.__index__),
    (float, ValueKind.FLOAT, float.__float__),
    (Decimal, ValueKind.DECIMAL, Decimal),
    (str, ValueKind.TEXT, str.__str__),
    ((bytes, bytearray, memoryview), ValueKind.BYTES, bytes),
    # datetime is a subclass of date, so it comes first. pandas' Timestamp and Timedelta pass here too.
    (dt.datetime, ValueKind.DATETIME, None),
    (dt.date, ValueKind.DATE, lambda day: dt.date(day.year, day.month, day.day)),
    (dt.time, ValueKind.TIME, lambda t: dt.time(t.hour, t.minute, t.second, t.microsecond, t.tzinfo)),
    (dt.timedelta, ValueKind.DURATION, None),
    (uuid.UUID, ValueKind.TEXT, str),
    (list, ValueKind.LIST, None),
    (Mapping, ValueKind.STRUCT, dict),
)

_NUMPY: Final[tuple[tuple[Any, ValueKind, Plain], ...]] = (
    (np.datetime64, ValueKind.DATETIME, None),
    # Before the integers: numpy makes timedelta64 a subclass of its signed integers.
    (np.timedelta64, ValueKind.DURATION, None),
    (np.bool_, ValueKind.BOOL, bool),
    (np.integer, ValueKind.INT, int),
    ((np.float16, np.float32, np.float64), ValueKind.FLOAT, float),
)


@lru_cache(maxsize=512)
def classify(kind: type) -> tuple[ValueKind, Plain] | None:
    """Return the kind of a type's values and how to make them plain, or None where they have no form on the wire.

    Named tuples and dataclasses have none: as lists they would lose their names, as structs they would not come back.
    """
    if (exact := EXACT.get(kind)) is not None:
        return exact, None
    if issubclass(kind, Enum):
        return ValueKind.MEMBER, None
    if _is_pandas_null(kind):
        return ValueKind.NULL, None
    if kind is np.ndarray:
        return ValueKind.LIST, list
    if issubclass(kind, tuple):
        return None if hasattr(kind, "_fields") else (ValueKind.LIST, None)
    for base, found, plain in (*_NUMPY, *_SUBCLASSES):
        if issubclass(kind, base):
            return found, plain
    return None


def _is_pandas_null(kind: type) -> bool:
    """``pd.NA`` and ``pd.NaT``; the latter's type is a subclass of datetime. pandas is not imported for this."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and kind in (type(pandas.NA), type(pandas.NaT))


def hint_for(kind: type) -> str:
    """Suggest a replacement for a value that has no form on the wire."""
    if issubclass(kind, tuple):
        return "Use its _asdict(), or tuple(value) where the names do not matter."
    if hasattr(kind, "__dataclass_fields__"):
        return "Use dataclasses.asdict(value)."
    if issubclass(kind, (set, frozenset)):
        return "Use a list, sorted where the order matters."
    if issubclass(kind, complex):
        return "Use two columns of floats."
    if hasattr(kind, "to_list"):
        return "Use its to_list()."
    return "Use str(value), or a dict of plain values."
