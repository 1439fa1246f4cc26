"""Arrow columns to JSON values: by column kernels where one is exact, value by value where none is."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framewire.errors import UnsupportedTypeError
from framewire.values.json._times import UNITS, dates_to_text, duration_text, times_to_text, timestamps_to_text
from framewire.wire import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from framewire.typing import JSONValue

__all__ = ["encode_column", "encode_rows"]

_types = pa.types


def encode_column(array: pa.Array | pa.ChunkedArray) -> list[JSONValue]:
    """One JSON value for each row.

    ======================= ==============================================================================
    Arrow                   JSON
    ======================= ==============================================================================
    null                    ``null``
    bool                    ``true``, ``false``
    integers                number up to 2^53-1 either side of zero, beyond that text
    floats                  number (float32, float16: the shortest that reads back to the same value);
                            ``"NaN"``, ``"Infinity"``, ``"-Infinity"``
    decimals                text, ``"1.20"``
    date                    ``"2013-01-01"``
    time                    ``"05:00:00.250"``
    timestamp               ``"2013-01-01T05:00:00"``; with a time zone the same instant in UTC, ``...Z``
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

    Raises:
        UnsupportedTypeError: The type (or one inside it) has no JSON form.
    """
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in _encode(chunk)]
    return _encode(array)


def encode_rows(table: pa.Table) -> list[dict[str, JSONValue]]:
    """One object for each row, keys in column order; a table without columns gives as many empty objects as rows."""
    if table.num_columns == 0:
        return [{} for _ in range(table.num_rows)]
    names = table.column_names
    columns = (encode_column(column) for column in table.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _encode(array: pa.Array) -> list[Any]:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _encode(array.storage)
    if _types.is_dictionary(kind):
        values = _encode(array.dictionary)
        return [None if code is None else values[code] for code in array.indices.to_pylist()]
    if _types.is_run_end_encoded(kind):
        return _encode(pc.run_end_decode(array))
    if _types.is_nested(kind):
        return _encode_nested(array)
    if _types.is_null(kind) or _types.is_boolean(kind) or _is_text(kind):
        return list(array.to_pylist())
    if _types.is_integer(kind):
        return _integers(array)
    if _types.is_floating(kind):
        return _floats(array)
    if _types.is_decimal(kind):
        return _decimals(array)
    if _types.is_temporal(kind):
        return _temporal(array)
    if _types.is_binary(kind) or _types.is_large_binary(kind) or _types.is_binary_view(kind):
        return _base64(array)
    if _types.is_fixed_size_binary(kind):
        return _base64(array)
    raise UnsupportedTypeError(f"Type {kind} has no JSON form.", hint="Cast the column to a plain type first.")


def _is_text(kind: pa.DataType) -> bool:
    return bool(_types.is_string(kind) or _types.is_large_string(kind) or _types.is_string_view(kind))


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
    return [value if value is None or math.isfinite(value) else _non_finite(value) for value in values]


def _non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _shortest(array: pa.Array) -> pa.Array:
    """float64 values whose text is the shortest that reads back to the same float32 or float16.

    0.1 as float32 is 0.10000000149011612; printed as 0.1 it costs the agent less and comes back the same. A value for
    which the way over float64 would round twice keeps all its digits.
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


def _temporal(array: pa.Array) -> list[str | None]:
    kind = array.type
    if _types.is_date(kind):
        return dates_to_text(array)
    if _types.is_time(kind):
        return times_to_text(array)
    if _types.is_timestamp(kind):
        return timestamps_to_text(array)
    if _types.is_duration(kind):
        ticks, per_second = array.view(pa.int64()).to_pylist(), UNITS[kind.unit]
        return [None if value is None else duration_text(value, per_second) for value in ticks]
    raise UnsupportedTypeError(
        f"Type {kind} has no JSON form.", hint="Publish months, days and nanoseconds as columns."
    )


def _encode_nested(array: pa.Array) -> list[Any]:
    kind = array.type
    if _types.is_union(kind):
        raise UnsupportedTypeError(f"Type {kind} has no JSON form.", hint="Publish one column for each kind of value.")
    valid: list[bool] = array.is_valid().to_pylist()
    if _types.is_struct(kind):
        return [row if keep else None for row, keep in zip(_objects(array), valid, strict=True)]
    if _types.is_fixed_size_list(kind):
        size, first = kind.list_size, array.offset
        items = _encode(array.values.slice(first * size, len(array) * size))
        return [items[row * size : (row + 1) * size] if keep else None for row, keep in enumerate(valid)]
    if _types.is_list_view(kind) or _types.is_large_list_view(kind):
        starts, sizes, base = array.offsets.to_pylist()[: len(array)], array.sizes.to_pylist(), 0
        items = _encode(array.values)
        ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    else:
        bounds = array.offsets.to_pylist()
        base = bounds[0]
        items = _encode(array.values.slice(base, bounds[-1] - base))
        starts, ends = bounds[:-1], bounds[1:]
    if _types.is_map(kind):
        items = [{"key": key, "value": value} for key, value in (entry.values() for entry in items)]
    spans = zip(starts, ends, valid, strict=True)
    return [items[start - base : end - base] if keep else None for start, end, keep in spans]


def _objects(array: pa.Array) -> list[dict[str, Any]]:
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    if len(set(names)) != len(names):
        raise UnsupportedTypeError(
            f"Type {array.type} has two fields of one name, which a JSON object cannot have.",
            hint="Rename one of the fields.",
        )
    if not names:
        return [{} for _ in range(len(array))]
    columns = [_encode(array.field(i)) for i in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
