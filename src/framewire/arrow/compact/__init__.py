"""No byte of an unpublished row survives.

Arrow shares memory: a slice, a filter or a masked value keeps the bytes that it hides, and whatever writes its buffers
sends them. What leaves this module holds the values of its rows and nothing else, at every depth:

- every buffer starts at its first row and ends at its last, bitmaps to the bit (the IPC writer pads up to 64 bytes with
  *whatever lies behind* a longer buffer; behind an exact one it writes zeros);
- nothing is left under nulls: fixed-width slots are zero, texts and lists empty, struct and fixed-size-list children
  null (or zero, where the child's field is not nullable);
- data buffers of views hold what views show; list children hold what lists hold; dictionaries hold the used values,
  in their order. A Polars ``Enum`` (field metadata ``_PL_ENUM_VALUES*``) keeps all its categories: they are its type.

Arrays that are so already are returned as they are: a column without nulls costs nothing, one with nulls or views a
vectorised check, and only a buffer that does hide something is copied.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from framewire.arrow.bits import as_array, as_buffer, hides, pack, read_bits, unpack
from framewire.arrow.compact._leaves import (
    bools,
    empty_hidden,
    fixed_width,
    masks,
    offsets_of,
    rebase,
    rebuild,
    text,
    views,
)
from framewire.arrow.take import filter_rows, take_rows
from framewire.arrow.threads import in_threads
from framewire.arrow.types import is_enum, is_list_view, is_view
from framewire.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from framewire.arrow.bits import Bits, Bools

__all__ = ["compact", "filter_rows", "take_rows"]

_MANY_ROWS = 1 << 20
"""Views that are worth threads."""

_types = pa.types


def compact(table: pa.Table) -> pa.Table:
    """The same values, schema and chunks in memory that holds nothing else.

    Args:
        table: Any columns but unions and run ends (which have no exact form on the wire), all of their values valid.

    Returns:
        A table whose buffers are the given ones where those hide nothing, else copies of what is shown. The table
        itself when nothing had to change. The given table is never altered.

    Raises:
        UnsupportedTypeError: A column is a union, or run-end encoded.
    """
    columns = table.columns
    new = [_column(column, field) for column, field in zip(columns, table.schema, strict=True)]
    if all(one is other for one, other in zip(new, columns, strict=True)):
        return table
    return pa.Table.from_arrays(new, schema=table.schema)


def _column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    chunks = column.chunks
    if is_view(field.type):
        compacted = partial(views, live=None, field=field)
        new = in_threads(compacted, chunks) if len(column) >= _MANY_ROWS else list(map(compacted, chunks))
    elif _types.is_dictionary(field.type):
        shared = _shared_use(chunks)
        new = [_dictionary(chunk, None, field, shared.get(_identity(chunk.dictionary))) for chunk in chunks]
    else:
        new = [_array(chunk, None, field) for chunk in chunks]
    if all(one is other for one, other in zip(new, chunks, strict=True)):
        return column
    return pa.chunked_array(new, type=column.type)


def _array(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    """Compact one array.

    Args:
        array: Any type, any offset.
        live: Packed bits of the rows whose parents are not null; ``None`` when all are.
        field: Its field: says whether it may be null, and whether it is an Enum.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        storage = array.storage
        new = _array(storage, live, field.with_type(kind.storage_type))
        return array if new is storage else pa.ExtensionArray.from_storage(kind, new)
    if _types.is_null(kind):
        return array if array.offset == 0 else pa.nulls(len(array))
    if _types.is_dictionary(kind):
        return _dictionary(array, live, field, None)
    if is_view(kind):
        return views(array, live, field)
    if _types.is_nested(kind) and not _types.is_union(kind):
        return _nested(array, live, field)
    if _types.is_union(kind) or _types.is_run_end_encoded(kind):
        raise UnsupportedTypeError.of_column(field.name, kind, "Decode it first: cast it to a plain type.")
    if _types.is_boolean(kind):
        return bools(array, live, field)
    if kind.num_buffers == 3:
        return text(array, live, field)
    return fixed_width(array, live, field)


def _nested(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    if is_list_view(array.type):
        return _list_view(array, live, field)
    if _types.is_fixed_size_list(array.type):
        return _fixed_size_list(array, live, field)
    return (_struct if _types.is_struct(array.type) else _list)(array, live, field)


def _list(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    offsets = offsets_of(array, _types.is_large_list(array.type))
    start, stop = int(offsets[0]), int(offsets[-1])
    values = array.values
    child = values if start == 0 and stop == len(values) else values.slice(start, stop - start)
    emptied = empty_hidden(offsets, keep)
    if emptied is None:
        buffer = rebase(array, offsets)
    else:
        buffer = as_buffer(emptied[0])
        child = filter_rows(child, pa.array(np.repeat(emptied[1], np.diff(offsets))))
    new = _array(child, None, array.type.field(0))
    return rebuild(array, valid, [buffer], [new], same=new is values)


def _list_view(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    """Keeps the elements that some list holds, once each: lists may share them and lie in any order."""
    valid, keep = masks(array, live, field)
    dtype = np.int64 if _types.is_large_list_view(array.type) else np.int32
    rows = slice(array.offset, array.offset + len(array))
    starts, sizes = (as_array(array.buffers()[i], dtype)[rows] for i in (1, 2))
    if keep is not None and hides(sizes != 0, keep):
        sizes = np.where(unpack(keep, len(array)), sizes, dtype(0))
    if starts[sizes == 0].any():
        starts = np.where(sizes == 0, dtype(0), starts)
    values = array.values
    steps = np.zeros(len(values) + 1, np.int64)
    np.add.at(steps, starts, 1)
    np.add.at(steps, starts.astype(np.int64) + sizes, -1)
    used = np.cumsum(steps[:-1]) > 0
    child = values
    if not used.all():
        child = filter_rows(values, pa.array(used))
        starts = np.concatenate(([0], np.cumsum(used)))[starts].astype(dtype)
    new = _array(child, None, array.type.field(0))
    return rebuild(array, valid, [as_buffer(starts), as_buffer(sizes)], [new], same=new is values)


def _fixed_size_list(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    size = array.type.list_size
    start, count = array.offset * size, len(array) * size
    values = array.values
    child = values if start == 0 and count == len(values) else values.slice(start, count)
    below = None if keep is None else pack(np.repeat(unpack(keep, len(array)), size))
    new = _array(child, below, array.type.field(0))
    return rebuild(array, valid, [], [new], same=new is values)


def _struct(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    children = [array.field(i) for i in range(array.type.num_fields)]
    new = [_array(child, keep, array.type.field(i)) for i, child in enumerate(children)]
    same = all(one is other for one, other in zip(new, children, strict=True))
    return rebuild(array, valid, [], new, same=same)


def _identity(dictionary: pa.Array) -> tuple[Any, ...]:
    """Equal for two chunks' dictionaries that are the same memory."""
    return (dictionary.offset, len(dictionary), *((b.address, b.size) if b else None for b in dictionary.buffers()))


def _codes(array: pa.Array, keep: Bits | None) -> Any:
    """The positions in the dictionary, zero where the row is not kept (what stands under a null may be anything)."""
    indices = array.indices
    dtype = indices.type.to_pandas_dtype()
    codes = as_array(indices.buffers()[1], dtype)[indices.offset : indices.offset + len(indices)]
    return codes if keep is None else np.where(unpack(keep, len(codes)), codes, dtype(0))


def _used(array: pa.Array, keep: Bits | None) -> Bools:
    used = np.zeros(len(array.dictionary), np.bool_)
    codes = _codes(array, keep)
    used[codes if keep is None else codes[unpack(keep, len(codes))]] = True
    return used


def _shared_use(chunks: Iterable[pa.Array]) -> dict[tuple[Any, ...], Bools]:
    """Which values the chunks together use of each dictionary: chunks that share one go on sharing one."""
    shared: dict[tuple[Any, ...], Bools] = {}
    for chunk in chunks:
        keep = None if chunk.null_count == 0 else read_bits(chunk.buffers()[0], chunk.offset, len(chunk))
        key, used = _identity(chunk.dictionary), _used(chunk, keep)
        shared[key] = shared[key] | used if key in shared else used
    return shared


def _dictionary(array: pa.Array, live: Bits | None, field: pa.Field, used: Bools | None) -> pa.Array:
    valid, keep = masks(array, live, field)
    kind, dictionary = array.type, array.dictionary
    indices = array.indices
    if used is None:
        used = _used(array, keep)
    if is_enum(field) or used.all():
        values = _array(dictionary, None, pa.field("", kind.value_type))
        flat = fixed_width(indices, live, field)
    else:
        values = _array(filter_rows(dictionary, pa.array(used)), None, pa.field("", kind.value_type))
        if len(values) == 0:
            valid = keep  # no value is left for a row that may not be null, below a parent that is
            codes = np.zeros(len(array), kind.index_type.to_pandas_dtype())
        else:
            codes = (np.cumsum(used) - 1)[_codes(array, keep)].astype(kind.index_type.to_pandas_dtype())
            codes = codes if keep is None else np.where(unpack(keep, len(codes)), codes, codes.dtype.type(0))
        bitmap = None if valid is None else as_buffer(valid)
        flat = pa.Array.from_buffers(kind.index_type, len(array), [bitmap, as_buffer(codes)])
    if values is dictionary and flat is indices:
        return array
    return pa.DictionaryArray.from_arrays(flat, values, ordered=kind.ordered, safe=False)
