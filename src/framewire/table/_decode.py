"""Arrays to the types of ``_types``: run ends, list views, extension and odd types decoded, all others untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from framewire._compact import take_rows
from framewire._infer._where import Where
from framewire.table._types import bare, is_kept_dictionary

_MAX_OFFSET = (1 << 31) - 1
_SECONDS_HINT = "Use a value within 292 million years of 1970, or null, or cast the column to text."
_MAX_SECONDS = ((1 << 63) - 1) // 1000
"""Polars holds seconds as milliseconds; beyond this they would overflow without a word."""


class _Relabelled:
    """An array under another type of the same layout, for pyarrow's import protocol: no byte is copied."""

    def __init__(self, array: pa.Array, kind: pa.DataType) -> None:
        self._array, self._kind = array, kind

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        _, array = self._array.__arrow_c_array__()
        return self._kind.__arrow_c_schema__(), array


def to_wire_type(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    """``array`` with the type that ``wire_type`` gave for its own.

    Raises:
        UnsupportedValueError: Seconds beyond what 64 bits of milliseconds hold, or a null key in a map; names column
            and row.
    """
    if _is_decoded(array.type):
        return _decode(array, target, where)
    return array if array.type.equals(target, check_metadata=True) else pa.array(_Relabelled(array, target))


def _is_decoded(kind: pa.DataType) -> bool:
    """Whether values of this type must be rebuilt or checked; other types differ from the target in labels only."""
    if isinstance(kind, pa.BaseExtensionType):
        return _is_decoded(kind.storage_type)
    if is_.is_dictionary(kind):
        return not is_kept_dictionary(kind) or _is_decoded(kind.value_type)
    if is_.is_decimal(kind):
        return not (is_.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)
    if is_.is_timestamp(kind) or is_.is_duration(kind):
        return bool(kind.unit == "s")
    if is_.is_fixed_size_list(kind):
        return kind.list_size == 0 or _is_decoded(kind.value_type)
    if is_.is_map(kind):
        return is_.is_dictionary(bare(kind.key_type)) or _is_decoded(kind.key_type) or _is_decoded(kind.item_type)
    if is_.is_list_view(kind) or is_.is_large_list_view(kind) or is_.is_run_end_encoded(kind) or is_.is_date64(kind):
        return True
    if is_.is_fixed_size_binary(kind):
        return bool(kind.byte_width == 0)
    return is_.is_nested(kind) and any(_is_decoded(kind.field(i).type) for i in range(kind.num_fields))


def _decode(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return to_wire_type(array.storage, target, where)
    if is_.is_run_end_encoded(kind):
        return to_wire_type(_run_ends(array), target, where)
    if is_.is_dictionary(kind):
        if not (is_kept_dictionary(kind) and is_.is_dictionary(target)):
            return to_wire_type(take_rows(array.dictionary, array.indices), target, where)
        values = to_wire_type(array.dictionary, target.value_type, Where(f"{where.path} (dictionary)"))
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=target.ordered)
    if is_.is_struct(kind):
        return _struct(array, target, where)
    if is_.is_map(kind):
        return _map(array, target, where)
    if is_.is_fixed_size_list(kind) and kind.list_size:
        return _fixed_size_list(array, target, where)
    if is_.is_nested(kind):
        return _list(array, target, where)
    return _flat(array, target, where)


def _run_ends(array: pa.Array) -> pa.Array:
    """Decoded by position, because pyarrow's own kernel knows neither views nor dictionaries."""
    positions = pa.array(np.arange(len(array.values)))
    runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, positions)
    return take_rows(array.values, pc.run_end_decode(runs.slice(array.offset, len(array))))


def _struct(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    # flatten() nulls the children of null structs and heeds the slice.
    children = [
        to_wire_type(child, field.type, where.field(field.name))
        for child, field in zip(array.flatten(), target, strict=True)
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _list(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    """Any list as a plain one. The items are gathered in order: a cast from list_view loses them (arrow#50994)."""
    if is_.is_fixed_size_list(array.type):
        offsets: Any = np.zeros(len(array) + 1, np.int64)
        items = array.values.slice(0, 0)
    else:
        offsets, items = _offsets(array), array.flatten()
    if offsets[-1] > _MAX_OFFSET and not is_.is_large_list(target):  # list views may share items
        raise where.refuse(len(array) - 1, str(array.type), "more than 2^31 items before this row", "Use large_list.")
    child = to_wire_type(items, target.value_type, where.items(offsets))
    mask = array.is_null() if array.null_count else None
    is_large = is_.is_large_list(target)
    make, width = (pa.LargeListArray, pa.int64()) if is_large else (pa.ListArray, pa.int32())
    return make.from_arrays(pa.array(offsets, width), child, type=target, mask=mask)


def _offsets(lists: pa.Array) -> Any:
    """Where each list's items begin once they lie end to end; one more than there are lists."""
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0))
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _map(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    """Through the list of structs that a map is underneath."""
    entries = pa.struct([array.type.key_field.with_nullable(False), array.type.item_field])
    lists = pa.array(_Relabelled(array, pa.list_(pa.field("entries", entries, nullable=False))))
    offsets = _offsets(lists)
    inside = where.items(offsets)
    keys, items = lists.flatten().flatten()
    keys = _map_keys(keys, target.key_type, inside.field("key"))
    items = to_wire_type(items, target.item_type, inside.field("value"))
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, type=target, mask=mask)


def _map_keys(keys: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    """Keys of a map as plain values, none of them null."""
    while is_.is_dictionary(bare(keys.type)):
        if isinstance(keys.type, pa.BaseExtensionType):
            keys = keys.storage
        elif is_.is_run_end_encoded(keys.type):
            keys = _run_ends(keys)
        else:
            keys = take_rows(keys.dictionary, keys.indices)
    keys = to_wire_type(keys, target, where)
    _refuse_where(keys.is_null(), keys, where, "a null key in a map", "Drop the entry, or use a list of structs.")
    return keys


def _fixed_size_list(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    size = target.list_size
    # Without what null lists hold, which is no value: it must neither be refused nor kept.
    child = to_wire_type(array.flatten(), target.value_type, where.items(_offsets(array)))
    if not array.null_count:
        return pa.FixedSizeListArray.from_arrays(child, type=target)
    shown = np.repeat(np.asarray(array.is_valid()), size)
    child = take_rows(child, pa.array(np.cumsum(shown) - 1, mask=~shown))
    return pa.FixedSizeListArray.from_arrays(child, type=target, mask=array.is_null())


def _flat(array: pa.Array, target: pa.DataType, where: Where) -> pa.Array:
    kind = array.type
    if is_.is_timestamp(kind) or is_.is_duration(kind):
        seconds = array.view(pa.int64())
        far = pc.or_(pc.greater(seconds, _MAX_SECONDS), pc.less(seconds, -_MAX_SECONDS))
        _refuse_where(far, array, where, f"a {kind} that is too far for milliseconds", _SECONDS_HINT)
        return array.view(target)
    if is_.is_fixed_size_binary(kind) and not is_.is_decimal(kind):  # of width 0
        return pa.array([None if gone else b"" for gone in array.is_null().to_pylist()], target)
    return array.cast(target)  # a decimal to at least as many digits; date64, whose validation found only midnights


def _refuse_where(bad: pa.Array, array: pa.Array, where: Where, why: str, hint: str) -> None:
    """Raise for the first row where ``bad`` is true."""
    if (at := pc.index(bad, pa.scalar(True)).as_py()) >= 0:
        raise where.refuse(at, str(array.type), why, hint)


def decode_column(column: pa.ChunkedArray, target: pa.Field) -> pa.ChunkedArray:
    """:func:`to_wire_type` for each chunk, with rows counted over all of them."""
    chunks: list[Any] = []
    row = 0
    for chunk in column.chunks:
        chunks.append(to_wire_type(chunk, target.type, Where(target.name).after(row)))
        row += len(chunk)
    return pa.chunked_array(chunks, type=target.type)
