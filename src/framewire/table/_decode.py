"""Convert arrays to the types of ``_types``: run ends, list views, extension and odd types are decoded, others untouched."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from framewire.arrow.items import Spans, as_list, decode_runs, relabel
from framewire.arrow.take import take_rows
from framewire.arrow.types import any_type, bare_type, is_list_view
from framewire.errors import PublishError, UnsupportedValueError
from framewire.table._types import is_kept_dictionary

_MAX_OFFSET: Final = (1 << 31) - 1


def decode_column(column: pa.ChunkedArray, target: pa.Field) -> pa.ChunkedArray:
    """A column in its wire type (``wire_field`` of its own); arrays of that type already are not copied.

    Raises:
        UnsupportedValueError: A map has a null key, which only a dictionary of keys can hide.
        PublishError: List views share so many items that 32-bit offsets do not reach them.
    """
    chunks = [_to_wire_type(chunk, target.type, target.name) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=target.type)


def _to_wire_type(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    return _decode(array, target, path) if any_type(_is_rebuilt, array.type) else relabel(array, target)


def _is_rebuilt(dtype: pa.DataType) -> bool:
    """Whether arrays of this type, their children aside, are rebuilt; others differ from the target in labels only."""
    if pa.types.is_dictionary(dtype):
        return not is_kept_dictionary(dtype)
    if pa.types.is_decimal(dtype):
        return not (pa.types.is_decimal128(dtype) and 0 <= dtype.scale <= dtype.precision)
    if pa.types.is_fixed_size_list(dtype):
        return bool(dtype.list_size == 0)
    if pa.types.is_map(dtype):
        return bool(pa.types.is_dictionary(bare_type(dtype.key_type)))
    if pa.types.is_fixed_size_binary(dtype):
        return bool(dtype.byte_width == 0)
    return bool(is_list_view(dtype) or pa.types.is_run_end_encoded(dtype) or pa.types.is_date64(dtype))


def _decode(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    dtype = array.type
    if isinstance(dtype, pa.BaseExtensionType):
        return _to_wire_type(array.storage, target, path)
    if pa.types.is_run_end_encoded(dtype):
        return _to_wire_type(decode_runs(array), target, path)
    if pa.types.is_dictionary(dtype):
        if not is_kept_dictionary(dtype):
            return _to_wire_type(take_rows(array.dictionary, array.indices), target, path)
        values = _to_wire_type(array.dictionary, target.value_type, path)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=target.ordered)
    if pa.types.is_struct(dtype):
        # field() heeds the slice; what lies under null structs is compacted away later.
        parts = [(array.field(at), field) for at, field in enumerate(target)]
        children = [_to_wire_type(part, field.type, f"{path}.{field.name}") for part, field in parts]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(array))
    if pa.types.is_map(dtype):
        return _map(array, target, path)
    if pa.types.is_fixed_size_list(dtype) and dtype.list_size:
        items = _to_wire_type(array.values, target.value_type, f"{path}[]")
        items = items.slice(array.offset * dtype.list_size, len(array) * dtype.list_size)
        return pa.FixedSizeListArray.from_arrays(items, type=target, mask=_mask(array))
    return _list(array, target, path) if pa.types.is_nested(dtype) else _flat(array, target)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _list(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    spans = Spans(array)
    items = spans.gather(_to_wire_type(array.values, target.value_type, f"{path}[]"))
    make, offsets = _layout(target, spans, path)
    return make.from_arrays(offsets, items, type=target, mask=_mask(array))


def _layout(target: pa.DataType, spans: Spans, path: str) -> tuple[Any, pa.Array]:
    if pa.types.is_large_list(target):
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
    while pa.types.is_dictionary(bare_type(keys.type)):
        if isinstance(keys.type, pa.BaseExtensionType):
            keys = keys.storage
        elif pa.types.is_run_end_encoded(keys.type):
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
    if pa.types.is_fixed_size_binary(array.type):  # of no bytes
        return pa.array([None if gone else b"" for gone in array.is_null().to_pylist()], target)
    if pa.types.is_date64(array.type):
        # Validation left midnights in range; what nulls and slices hide may be anything.
        return array.cast(target, safe=False)
    return array.cast(target)  # a decimal to at least as many digits
