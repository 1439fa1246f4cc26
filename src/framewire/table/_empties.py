"""Arrays of no values, rebuilt: pyarrow fails on some that it made itself.

The C interface gives no buffer sizes, so pyarrow computes them, and computes 0 for an array of no values. Where such an
array is a slice, as the items of a list column without items may be, the bytes before the slice are then missed: its
validation calls views malformed, and ``concat_batches`` fails for every type (pyarrow 26).
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as is_

from framewire.table._items import as_list, relabel


def rebuild_empties(table: pa.Table) -> pa.Table:
    """The same table with every sliced array of no values made anew, at any depth. Nothing else is copied."""
    for position, column in enumerate(table.columns):
        if any(map(_has_sliced_empty, column.chunks)):
            chunks = pa.chunked_array([_rebuilt(chunk) for chunk in column.chunks], column.type)
            table = table.set_column(position, table.schema.field(position), chunks)
    return table


def _has_sliced_empty(array: pa.Array) -> bool:
    kind = array.type
    if len(array) == 0:
        # What is nested may have such children, which a map does not show.
        return bool(array.offset or is_.is_nested(kind)) and not _holds_run_ends(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return _has_sliced_empty(array.storage)
    if is_.is_dictionary(kind):
        return _has_sliced_empty(array.dictionary)
    if is_.is_struct(kind):
        return any(_has_sliced_empty(array.field(at)) for at in range(kind.num_fields))
    if is_.is_map(kind):
        return _has_sliced_empty(as_list(array))
    return kind.num_fields > 0 and not _is_left_alone(kind) and _has_sliced_empty(array.values)


def _holds_run_ends(kind: pa.DataType) -> bool:
    """Run ends without rows are left as they are: pyarrow makes no valid ones."""
    if isinstance(kind, pa.BaseExtensionType):
        return _holds_run_ends(kind.storage_type)
    if is_.is_dictionary(kind):
        return _holds_run_ends(kind.value_type)
    return bool(is_.is_run_end_encoded(kind)) or any(
        _holds_run_ends(kind.field(at).type) for at in range(kind.num_fields)
    )


def _is_left_alone(kind: pa.DataType) -> bool:
    """Run ends have values wherever they have rows; unions are refused before."""
    return bool(is_.is_run_end_encoded(kind) or is_.is_union(kind))


def _rebuilt(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_sliced_empty(array):
        return array
    if len(array) == 0:
        return pa.nulls(0, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _rebuilt(array.storage))
    if is_.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            array.indices, _rebuilt(array.dictionary), ordered=kind.ordered, safe=False
        )
    if is_.is_struct(kind):
        children = [_rebuilt(array.field(at)) for at in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if is_.is_map(kind):
        return relabel(_rebuilt(as_list(array)), kind)
    if not is_.is_nested(kind) or _is_left_alone(kind):
        return array
    own = 1 if is_.is_fixed_size_list(kind) else 3 if is_.is_list_view(kind) or is_.is_large_list_view(kind) else 2
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:own], offset=array.offset, children=[_rebuilt(array.values)]
    )
