"""Arrays to the types of ``_types``: run ends, list views, extension and odd types decoded, all others untouched."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from framewire.arrow.take import take_rows
from framewire.errors import PublishError, UnsupportedValueError
from framewire.table._items import Spans, as_list, relabel
from framewire.table._types import bare, is_kept_dictionary

_MAX_OFFSET: Final = (1 << 31) - 1


def decode_column(column: pa.ChunkedArray, target: pa.Field) -> pa.ChunkedArray:
    """A column in its wire type (``wire_field`` of its own); arrays that are there already are not copied.

    Raises:
        UnsupportedValueError: A map has a null key, which only a dictionary of keys can hide.
        PublishError: List views share so many items that 32-bit offsets do not reach them.
    """
    chunks = [_to_wire_type(chunk, target.type, target.name) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=target.type)


def _to_wire_type(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    return _decode(array, target, path) if _is_decoded(array.type) else relabel(array, target)


def _is_decoded(kind: pa.DataType) -> bool:
    """Whether arrays of this type must be rebuilt; others differ from the target in labels only, if at all."""
    if isinstance(kind, pa.BaseExtensionType):
        return _is_decoded(kind.storage_type)
    if is_.is_dictionary(kind):
        return not is_kept_dictionary(kind) or _is_decoded(kind.value_type)
    if is_.is_decimal(kind):
        return not (is_.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)
    if is_.is_fixed_size_list(kind):
        return kind.list_size == 0 or _is_decoded(kind.value_type)
    if is_.is_map(kind):
        return is_.is_dictionary(bare(kind.key_type)) or _is_decoded(kind.key_type) or _is_decoded(kind.item_type)
    if is_.is_list_view(kind) or is_.is_large_list_view(kind) or is_.is_run_end_encoded(kind) or is_.is_date64(kind):
        return True
    if is_.is_fixed_size_binary(kind):
        return bool(kind.byte_width == 0)
    return is_.is_nested(kind) and any(_is_decoded(kind.field(i).type) for i in range(kind.num_fields))


def _decode(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _to_wire_type(array.storage, target, path)
    if is_.is_run_end_encoded(kind):
        return _to_wire_type(decode_runs(array), target, path)
    if is_.is_dictionary(kind):
        if not is_kept_dictionary(kind):
            return _to_wire_type(take_rows(array.dictionary, array.indices), target, path)
        values = _to_wire_type(array.dictionary, target.value_type, path)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=target.ordered)
    if is_.is_struct(kind):
        # field() heeds the slice; what lies under null structs is compacted away later.
        children = [
            _to_wire_type(array.field(at), field.type, f"{path}.{field.name}") for at, field in enumerate(target)
        ]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(array))
    if is_.is_map(kind):
        return _map(array, target, path)
    if is_.is_fixed_size_list(kind) and kind.list_size:
        items = _to_wire_type(array.values, target.value_type, f"{path}[]")
        items = items.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        return pa.FixedSizeListArray.from_arrays(items, type=target, mask=_mask(array))
    return _list(array, target, path) if is_.is_nested(kind) else _flat(array, target)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def decode_runs(array: pa.Array) -> pa.Array:
    """Decoded by position, because pyarrow's own kernel knows neither views nor dictionaries."""
    positions = pa.array(np.arange(len(array.values)))
    runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, positions)
    return take_rows(array.values, pc.run_end_decode(runs.slice(array.offset, len(array))))


def _list(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    spans = Spans(array)
    items = spans.gather(_to_wire_type(array.values, target.value_type, f"{path}[]"))
    make, offsets = _layout(target, spans, path)
    return make.from_arrays(offsets, items, type=target, mask=_mask(array))


def _layout(target: pa.DataType, spans: Spans, path: str) -> tuple[Any, pa.Array]:
    if is_.is_large_list(target):
        return pa.LargeListArray, pa.array(spans.offsets, pa.int64())
    if spans.offsets[-1] > _MAX_OFFSET:
        raise PublishError(
            f"Column {path!r} has more than 2^31 items in one chunk once its lists share none.",
            hint="Cast it to large_list.",
        )
    return pa.ListArray, pa.array(spans.offsets, pa.int32())


def _map(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    lists = as_list(array)
    spans = Spans(lists)
    keys, items = lists.values.field(0), lists.values.field(1)
    while is_.is_dictionary(bare(keys.type)):
        if isinstance(keys.type, pa.BaseExtensionType):
            keys = keys.storage
        elif is_.is_run_end_encoded(keys.type):
            keys = decode_runs(keys)
        else:
            keys = take_rows(keys.dictionary, keys.indices)
    keys = spans.gather(_to_wire_type(keys, target.key_type, f"{path}[].key"))
    items = spans.gather(_to_wire_type(items, target.item_type, f"{path}[].value"))
    if keys.null_count:
        raise UnsupportedValueError(
            f"Column {path!r} has a map with a null key.",
            hint="Drop the entry, or use a list of structs.",
            details={"column": path, "kind": str(array.type)},
        )
    _, offsets = _layout(pa.list_(target.item_type), spans, path)
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(array))


def _flat(array: pa.Array, target: pa.DataType) -> pa.Array:
    if is_.is_fixed_size_binary(array.type) and not is_.is_decimal(array.type):  # of no bytes
        return pa.array([None if gone else b"" for gone in array.is_null().to_pylist()], target)
    if is_.is_date64(
        array.type
    ):  # midnights, as validation left, and near ones; what nulls and slices hide may be others
        return array.cast(target, safe=False)
    return array.cast(target)  # a decimal to at least as many digits
