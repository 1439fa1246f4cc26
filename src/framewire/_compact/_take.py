"""Rows of an array of any type. pyarrow 26 takes and filters no string or binary view, nor anything that nests one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from framewire._compact._bits import as_buffer, read_bits

__all__ = ["filter_rows", "take_rows"]

_SHADOW = pa.binary(16)
"""A view is 16 bytes and moves as such: the data buffers that it points into stay as they are."""


def take_rows(array: pa.Array, indices: Any) -> pa.Array:
    """The rows at ``indices`` (an integer Arrow array), in that order. Views keep all bytes: compact the result."""
    return _unshadow(_shadow(array).take(indices), array) if _has_views(array.type) else array.take(indices)


def filter_rows(array: pa.Array, mask: Any) -> pa.Array:
    """The rows where ``mask`` (a boolean Arrow array) is true. Views keep all bytes: compact the result."""
    return _unshadow(_shadow(array).filter(mask), array) if _has_views(array.type) else array.filter(mask)


def is_view(kind: pa.DataType) -> bool:
    """Whether the type is ``string_view`` or ``binary_view``."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _has_views(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_views(kind.storage_type)
    return is_view(kind) or any(_has_views(kind.field(i).type) for i in range(kind.num_fields))


def _children(array: pa.Array) -> list[pa.Array]:
    """Children as the array's own offset sees them: a struct's are cut to it, all others' are whole."""
    if pa.types.is_struct(array.type):
        return [array.field(i) for i in range(array.type.num_fields)]
    return [array.values]


def own_buffers(array: pa.Array) -> list[pa.Buffer | None]:
    """The buffers of the array itself, without its children's."""
    kind = array.type
    if pa.types.is_struct(kind) or pa.types.is_fixed_size_list(kind):
        return list(array.buffers()[:1])
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return list(array.buffers()[:3])
    return list(array.buffers()[:2]) if kind.num_fields else list(array.buffers())


def _shadow_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _shadow_type(kind.storage_type)
    if is_view(kind):
        return _SHADOW
    if not _has_views(kind):
        return kind
    fields = [kind.field(i).with_type(_shadow_type(kind.field(i).type)) for i in range(kind.num_fields)]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(fields[0].type.field(0), fields[0].type.field(1), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(fields[0])
    if pa.types.is_list_view(kind):
        return pa.list_view(fields[0])
    return pa.large_list_view(fields[0]) if pa.types.is_large_list_view(kind) else pa.list_(fields[0])


def _shadow(array: pa.Array) -> pa.Array:
    """The same memory under a type in which every view is a 16-byte value."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _shadow(array.storage)
    if is_view(kind):
        return pa.Array.from_buffers(_SHADOW, len(array), array.buffers()[:2], offset=array.offset)
    if not _has_views(kind):
        return array
    children = [_shadow(child) for child in _children(array)]
    if pa.types.is_struct(kind) and array.offset:
        # The children are cut already, so the validity must be as well.
        valid = None if array.null_count == 0 else as_buffer(read_bits(array.buffers()[0], array.offset, len(array)))
        return pa.Array.from_buffers(_shadow_type(kind), len(array), [valid], children=children)
    buffers = own_buffers(array)
    return pa.Array.from_buffers(_shadow_type(kind), len(array), buffers, offset=array.offset, children=children)


def _unshadow(shadow: pa.Array, model: pa.Array) -> pa.Array:
    """The taken 16-byte values as views again, over the data buffers of the array that they came from."""
    kind = model.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _unshadow(shadow, model.storage))
    if is_view(kind):
        buffers = [*shadow.buffers(), *model.buffers()[2:]]
        return pa.Array.from_buffers(kind, len(shadow), buffers, offset=shadow.offset)
    if not _has_views(kind):
        return shadow
    children = [_unshadow(new, old) for new, old in zip(_children(shadow), _children(model), strict=True)]
    return pa.Array.from_buffers(kind, len(shadow), own_buffers(shadow), offset=shadow.offset, children=children)
