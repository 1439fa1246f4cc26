"""Arrays of no values, rebuilt: pyarrow fails on some that it made itself.

The C interface gives no buffer sizes, so pyarrow computes them, and computes 0 for an array of no values. Where such an
array is a slice, as the items of a list column without items may be, the bytes before the slice are then missed: its
validation calls views malformed, and ``concat_batches`` fails for every type (pyarrow 26).
"""

from __future__ import annotations

import pyarrow as pa

from framewire.arrow.nested import children, with_children
from framewire.arrow.types import any_type


def rebuild_sliced_empties(table: pa.Table) -> pa.Table:
    """The same table with every sliced array of no values made anew, at any depth. Nothing else is copied."""
    for position, column in enumerate(table.columns):
        chunks = column.chunks
        rebuilt = [_rebuild(chunk) for chunk in chunks]
        if any(new is not old for new, old in zip(rebuilt, chunks, strict=True)):
            new = pa.chunked_array(rebuilt, column.type)
            table = table.set_column(position, table.schema.field(position), new)
    return table


def _rebuild(array: pa.Array) -> pa.Array:
    """``array`` with its sliced empties rebuilt, or ``array`` itself where it has none."""
    dtype = array.type
    if pa.types.is_run_end_encoded(dtype):  # they have values wherever they have rows
        return array
    if len(array) == 0:
        # A nested array may have such children, which a map does not show. pyarrow makes no valid run ends without rows.
        is_rebuilt = array.offset or pa.types.is_nested(dtype)
        return pa.nulls(0, dtype) if is_rebuilt and not any_type(pa.types.is_run_end_encoded, dtype) else array
    parts = children(array)
    rebuilt = [_rebuild(part) for part in parts]
    if all(new is old for new, old in zip(rebuilt, parts, strict=True)):
        return array
    return with_children(array, rebuilt, dtype)
