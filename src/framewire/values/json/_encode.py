"""Converts Arrow columns to JSON values: by kernels where one is exact, value by value elsewhere."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framewire.arrow.items import Spans, as_list, decode_runs
from framewire.arrow.nested import children
from framewire.arrow.ranges import out_of_range
from framewire.arrow.types import TICKS
from framewire.errors import UnsupportedTypeError
from framewire.values.json._times import dates_to_text, duration_text, times_to_text, timestamps_to_text, year_range
from framewire.values.location import ValueLocation
from framewire.wire import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from framewire.typing import JSONValue

__all__ = ["encode_column", "encode_rows", "non_finite_text"]

_types = pa.types


def encode_column(array: pa.Array | pa.ChunkedArray, *, name: str, first_row: int = 0) -> list[JSONValue]:
    """Convert a column to one JSON value per row.

    ======================= ==============================================================================
    Arrow                   JSON
    ======================= ==============================================================================
    null                    ``null``
    bool                    ``true``, ``false``
    integers                number up to 2^53-1 either side of zero, beyond that text
    floats                  number (float32, float16: the shortest that reads back to the same value);
                            ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
    decimals                text, ``"1.20"``
    date                    ``"2013-01-01"``; years 1 to 9999
    time                    ``"05:00:00.250"``
    timestamp               ``"2013-01-01T05:00:00"``; with a time zone the same instant in UTC, ``...Z``;
                            years 1 to 9999
    duration                ``"PT-3.5S"``
    string                  text
    binary, fixed size too  base64 text
    lists of all kinds      array
    struct                  object
    map                     array of ``{"key": ..., "value": ...}``
    dictionary              its value's form
    extension               its storage's form
    ======================= ==============================================================================

    Args:
        array: A column of any type but unions and intervals.
        name: The column's name, for errors.
        first_row: Row of the table that the column begins at, for errors.

    Raises:
        UnsupportedTypeError: The type (or one inside it) has no JSON form.
        UnsupportedValueError: A date or timestamp is outside the years 1 to 9999; names column and row.
    """
    column = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    if (outside := out_of_range(column, year_range)) is not None:
        raise ValueLocation(name + outside.path).refuse(
            first_row + outside.row,
            str(outside.dtype),
            f"a {outside.dtype} outside the years 1 to 9999, which has no JSON form",
            "Send the column as Arrow (mode='async', and not in abstract_domains), or cast it to integers or text.",
        )
    return [value for chunk in column.chunks for value in _encode(chunk)]


def encode_rows(table: pa.Table, *, first_row: int = 0) -> list[dict[str, JSONValue]]:
    """Convert a table to one object per row, keys in column order; a table without columns gives empty objects.

    Args:
        table: Columns as :func:`encode_column` takes them.
        first_row: Row that errors call the first one, for a slice of a larger table.

    Raises:
        UnsupportedTypeError, UnsupportedValueError: As :func:`encode_column`.
    """
    if table.num_columns == 0:
        return [{} for _ in range(table.num_rows)]
    names = table.column_names
    columns = (
        encode_column(column, name=name, first_row=first_row) for name, column in zip(names, table.columns, strict=True)
    )
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _encode(array: pa.Array) -> list[Any]:
    if isinstance(array.type, pa.BaseExtensionType):
        return _encode(array.storage)
    encode = _ENCODERS.get(array.type.id)
    if encode is None:  # unions and intervals
        raise UnsupportedTypeError(
            f"Type {array.type} has no JSON form.", hint="Cast the column to a plain type first."
        )
    return encode(array)


def _plain(array: pa.Array) -> list[Any]:
    return list(array.to_pylist())


def _dictionary(array: pa.Array) -> list[Any]:
    values = _encode(array.dictionary)
    return [None if code is None else values[code] for code in array.indices.to_pylist()]


def _base64(array: pa.Array) -> list[str | None]:
    return [None if value is None else b64encode(value).decode("ascii") for value in array.to_pylist()]


def _integers(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    if array.type.bit_width == 64:
        bounds = pc.min_max(array).as_py()
        if bounds["min"] is not None and max(-bounds["min"], bounds["max"]) > MAX_SAFE_INTEGER:
            safe = MAX_SAFE_INTEGER
            return [value if value is None or -safe <= value <= safe else str(value) for value in values]
    return values


def _floats(array: pa.Array) -> list[Any]:
    wide = array if _types.is_float64(array.type) else _shortest(array)
    values: list[Any] = wide.to_pylist()
    if pc.all(pc.is_finite(wide), min_count=0).as_py():
        return values
    return [value if value is None or math.isfinite(value) else non_finite_text(value) for value in values]


def non_finite_text(value: float) -> str:
    """Write NaN or an infinity, for which JSON has no number."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _shortest(array: pa.Array) -> pa.Array:
    """Return float64 values whose text is the shortest that reads back to the same float32 or float16.

    0.1 as float32 is 0.10000000149011612; printed as 0.1 it costs the agent less and reads back the same. A value that
    would be rounded twice by way of float64 keeps all its digits.
    """
    if _types.is_float16(array.type):
        numbers = array.fill_null(np.float16(0)).to_numpy(zero_copy_only=False)
        distinct, where = np.unique(numbers.view(np.uint16), return_inverse=True)
        wide = np.array([float(str(half)) for half in distinct.view(np.float16)])[where]
    else:
        numbers = array.fill_null(0.0).to_numpy(zero_copy_only=False)
        wide = array.cast(pa.string()).cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        twice = (wide.astype(numbers.dtype) != numbers) & ~np.isnan(numbers)
    wide = np.where(twice, numbers.astype(np.float64), wide)
    return pa.array(wide, mask=array.is_null().to_numpy(zero_copy_only=False))


def _decimals(array: pa.Array) -> list[str | None]:
    text = array.cast(pa.string())
    if not pc.any(pc.match_substring(text, "E"), min_count=0).as_py():
        return list(text.to_pylist())
    return [None if value is None else format(value, "f") for value in array.to_pylist()]  # never an exponent


def _durations(array: pa.Array) -> list[str | None]:
    ticks, per_second = array.view(pa.int64()).to_pylist(), TICKS[array.type.unit]
    return [None if value is None else duration_text(value, per_second) for value in ticks]


def _structs(array: pa.Array) -> list[Any]:
    names = [field.name for field in array.type]
    if len(set(names)) != len(names):
        raise UnsupportedTypeError(
            f"Type {array.type} has two fields of one name, which a JSON object cannot have.",
            hint="Rename one of the fields.",
        )
    columns = [_encode(child) for child in children(array)]
    rows = zip(*columns, strict=True) if names else repeat((), len(array))
    valid = array.is_valid().to_pylist()
    return [dict(zip(names, row, strict=True)) if keep else None for row, keep in zip(rows, valid, strict=True)]


def _lists(array: pa.Array) -> list[Any]:
    """Lists of all kinds, and maps as lists of their entries."""
    lists = as_list(array)
    spans = Spans(lists)
    items, offsets = _encode(spans.gather(lists.values)), spans.offsets.tolist()
    valid = array.is_valid().to_pylist()
    spans_and_valid = zip(pairwise(offsets), valid, strict=True)
    return [items[start:stop] if keep else None for (start, stop), keep in spans_and_valid]


def _maps(array: pa.Array) -> list[Any]:
    return [
        None if entries is None else [dict(zip(("key", "value"), entry.values(), strict=True)) for entry in entries]
        for entries in _lists(array)
    ]


_ENCODERS: Final[dict[int, Callable[[Any], list[Any]]]] = {
    getattr(pa.lib, f"Type_{name}"): encode
    for names, encode in (
        ("NA BOOL STRING LARGE_STRING STRING_VIEW", _plain),
        ("INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64", _integers),
        ("HALF_FLOAT FLOAT DOUBLE", _floats),
        ("DECIMAL32 DECIMAL64 DECIMAL128 DECIMAL256", _decimals),
        ("DATE32 DATE64", dates_to_text),
        ("TIME32 TIME64", times_to_text),
        ("TIMESTAMP", timestamps_to_text),
        ("DURATION", _durations),
        ("BINARY LARGE_BINARY BINARY_VIEW FIXED_SIZE_BINARY", _base64),
        ("LIST LARGE_LIST FIXED_SIZE_LIST LIST_VIEW LARGE_LIST_VIEW", _lists),
        ("MAP", _maps),
        ("STRUCT", _structs),
        ("DICTIONARY", _dictionary),
        ("RUN_END_ENCODED", lambda array: _encode(decode_runs(array))),
    )
    for name in names.split()
}
"""How each type is encoded, by its id."""
