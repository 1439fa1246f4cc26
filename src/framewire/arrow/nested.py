"""Nested arrays taken apart and put together again, of every type. See :func:`framewire.arrow.types.children` for types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from framewire.arrow.bits import as_buffer, read_bits
from framewire.arrow.types import is_list_view


def children(array: pa.Array) -> list[pa.Array]:
    """Arrays directly within an array, one for each of its type's: a struct's are cut to its rows, all others are whole."""
    dtype = array.type
    if isinstance(dtype, pa.BaseExtensionType):
        return [array.storage]
    if pa.types.is_dictionary(dtype):
        return [array.dictionary]
    if pa.types.is_struct(dtype):
        return [array.field(i) for i in range(dtype.num_fields)]
    return [array.values] if dtype.num_fields and not pa.types.is_union(dtype) else []


def with_children(array: pa.Array, new: Sequence[pa.Array], dtype: pa.DataType) -> pa.Array:
    """The rows of ``array`` over other children, as ``dtype``: of the same layout, or the storage of its extension type."""
    if isinstance(array.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(dtype, new[0]) if dtype == array.type else new[0]
    if pa.types.is_dictionary(dtype):
        return pa.DictionaryArray.from_arrays(array.indices, new[0], ordered=dtype.ordered, safe=False)
    if pa.types.is_struct(dtype):
        # The children are cut already, so the validity must be as well.
        valid = None if array.null_count == 0 else as_buffer(read_bits(array.buffers()[0], array.offset, len(array)))
        return pa.Array.from_buffers(dtype, len(array), [valid], children=new)
    if pa.types.is_run_end_encoded(dtype):
        new = [array.run_ends, *new]
    return pa.Array.from_buffers(dtype, len(array), own_buffers(array), offset=array.offset, children=new)


def own_buffers(array: pa.Array) -> list[pa.Buffer | None]:
    """The buffers of the array itself, without its children's."""
    dtype = array.type
    if dtype.num_fields == 0:
        return list(array.buffers())
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_map(dtype):
        return list(array.buffers()[:2])
    return list(array.buffers()[: 3 if is_list_view(dtype) else 1])
