"""Converts JSON values to Arrow columns of flat types."""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from framewire.arrow.ranges import out_of_range
from framewire.arrow.search import first_failing
from framewire.arrow.types import TICKS
from framewire.errors import UnsupportedTypeError
from framewire.values.json._refusal import fail
from framewire.values.json._times import (
    parse_duration,
    parse_instants,
    parse_time,
    parse_timestamp,
    year_range,
)
from framewire.values.location import ValueLocation

__all__ = ["bound_nulls", "build_array", "decode_scalars"]

_types = pa.types
_INTEGER_RE = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DECIMAL_RE = re.compile(r"[+-]?\d{1,80}(\.\d{1,80})?([eE][+-]?\d{1,2})?", re.ASCII)
_NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
MAX_NULL_FILL: Final = 1 << 24
"""Limit of elements or bytes that fill the null slots of one fixed-size column."""
_SAFE_FLOAT: Final = 2.0**53
"""A larger whole float may stand for several integers."""


def decode_scalars(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    if _types.is_integer(kind):
        return _integers(values, kind, location)
    if _types.is_floating(kind):
        return _floats(values, kind, location)
    if _types.is_decimal(kind):
        return build_array([_decimal(v, i, kind, location) for i, v in enumerate(values)], values, kind, location)
    if _types.is_temporal(kind):
        return _temporal(values, kind, location)
    if "binary" in str(kind):
        if _types.is_fixed_size_binary(kind):
            bound_nulls(values, kind.byte_width, kind, location)
        return build_array([_bytes(v, i, kind, location) for i, v in enumerate(values)], values, kind, location)
    classes = () if _types.is_null(kind) else (bool,) if _types.is_boolean(kind) else (str,)
    _check_classes(values, classes, kind, location)
    return build_array(list(values), values, kind, location)


def _check_classes(
    values: Sequence[Any], classes: tuple[type, ...], kind: pa.DataType, location: ValueLocation
) -> None:
    """Refuse values that are neither null nor exactly of one of ``classes``."""
    if not set(map(type, values)) <= {type(None), *classes}:
        position = next(i for i, value in enumerate(values) if value is not None and type(value) not in classes)
        fail(location, position, values[position], kind)


def build_array(converted: list[Any], values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    """Call ``pa.array``; where it refuses, fail with the first row that it refuses."""

    def refused(first: int, last: int) -> bool:
        try:
            pa.array(converted[first:last], kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return True
        return False

    try:
        return pa.array(converted, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        position = first_failing(len(converted), refused)
    fail(location, position, values[position], kind)


def bound_nulls(values: Sequence[Any], width: int, kind: pa.DataType, location: ValueLocation) -> None:
    """Refuse nulls that need far more memory than their text: the type may be foreign input, too."""
    if values.count(None) * width > MAX_NULL_FILL:
        fail(
            location,
            values.index(None),
            None,
            kind,
            f"is stored in {width} elements or bytes, which is too much in all",
        )


def _integers(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    if not set(map(type, values)) <= {int, type(None)}:
        values = [_integer(value, i, kind, location) for i, value in enumerate(values)]
    bits = kind.bit_width
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if _types.is_signed_integer(kind) else (0, (1 << bits) - 1)
    present = [value for value in values if value is not None]
    if present and (min(present) < low or max(present) > high):
        position = next(i for i, value in enumerate(values) if value is not None and not low <= value <= high)
        fail(location, position, values[position], kind, "is out of range")
    return pa.array(values, kind)


def _integer(value: Any, position: int, kind: pa.DataType, location: ValueLocation) -> int | None:
    if value is None or type(value) is int:
        return value
    if type(value) is float and value.is_integer() and abs(value) <= _SAFE_FLOAT:
        return int(value)
    if type(value) is str and _INTEGER_RE.fullmatch(value):
        return int(value)
    fail(location, position, value, kind)


def _floats(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    if not set(map(type, values)) <= {float, type(None)}:
        values = [_float(value, i, kind, location) for i, value in enumerate(values)]
    wide = pa.array(values, pa.float64())
    if _types.is_float64(kind):
        return wide
    missing = wide.is_null().to_numpy(zero_copy_only=False)
    exact = wide.fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = exact.astype(kind.to_pandas_dtype())
    lost = np.flatnonzero(np.isinf(narrow) & ~np.isinf(exact))
    if len(lost):
        fail(location, int(lost[0]), values[int(lost[0])], kind)
    return pa.array(narrow, kind, mask=missing, from_pandas=False)


def _float(value: Any, position: int, kind: pa.DataType, location: ValueLocation) -> float | None:
    if value is None or type(value) is float:
        return value
    if type(value) is int and abs(value) < 1 << 1000 and int(float(value)) == value:
        return float(value)
    if type(value) is str and value in _NON_FINITE:
        return _NON_FINITE[value]
    fail(location, position, value, kind)


def _decimal(value: Any, position: int, kind: pa.DataType, location: ValueLocation) -> Decimal | None:
    if value is None:
        return None
    if type(value) is int and abs(value) < 10**80:
        return Decimal(value)
    if type(value) is str and _DECIMAL_RE.fullmatch(value):
        return Decimal(value)
    fail(location, position, value, kind)


def _bytes(value: Any, position: int, kind: pa.DataType, location: ValueLocation) -> bytes | None:
    if value is None:
        return None
    if type(value) is str:
        try:
            data = binascii.a2b_base64(value, strict_mode=True)
        except ValueError:  # binascii.Error, or text that is not ASCII
            fail(location, position, value, kind)
        if b64encode(data).decode("ascii") == value:  # no two texts for the same bytes
            return data
    fail(location, position, value, kind)


def _temporal(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    if _types.is_interval(kind):
        raise UnsupportedTypeError(
            f"Type {kind} has no JSON form.", hint="Publish months, days and nanoseconds as columns."
        )
    _check_classes(values, (str,), kind, location)
    if _types.is_time(kind):
        return _ticks(values, lambda text: parse_time(text, TICKS[kind.unit]), kind, location)
    if _types.is_duration(kind):
        return _ticks(values, lambda text: parse_duration(text, TICKS[kind.unit]), kind, location)
    return _instants(values, kind, location)


def _instants(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    """Dates and timestamps."""
    array = parse_instants(values, kind)
    if array is None and _types.is_timestamp(kind):
        array = _ticks(values, lambda text: parse_timestamp(text, kind), kind, location)
    elif array is None:
        position = first_failing(len(values), lambda start, stop: parse_instants(values[start:stop], kind) is None)
        fail(location, position, values[position], kind)
    # Arrow reads the year 0, and an offset can carry an instant out of the last year.
    if (outside := out_of_range(pa.chunked_array([array]), year_range)) is not None:
        fail(location, outside.row, values[outside.row], kind, "is outside the years 1 to 9999")
    return array


def _ticks(
    values: Sequence[Any], parse: Callable[[str], int | None], kind: pa.DataType, location: ValueLocation
) -> pa.Array:
    ticks: list[int | None] = []
    for position, value in enumerate(values):
        ticks.append(None if value is None else parse(value))
        if ticks[-1] is None and value is not None:
            fail(location, position, value, kind)
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    return build_array(ticks, values, storage, location).view(kind)
