"""Arrays of no values, rebuilt: pyarrow refuses some that it made itself.

The C interface gives no buffer sizes, so pyarrow computes them, and computes 0 for an array of no values. Where such an
array is a slice, as the items of a list column without items may be, its own validation then misses the bytes before the
slice, and calls the column malformed (views; pyarrow 26).
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as is_

from framewire.table._items import as_list, relabel


def rebuild_empties(array: pa.Array) -> pa.Array:
    """The same values with every array of no values made anew, at any depth. Nothing else is copied."""
    kind = array.type
    if len(array) == 0:
        return pa.nulls(0, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, rebuild_empties(array.storage))
    if is_.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            array.indices, rebuild_empties(array.dictionary), ordered=kind.ordered, safe=False
        )
    if is_.is_struct(kind):
        children = [rebuild_empties(array.field(at)) for at in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if is_.is_map(kind):
        return relabel(rebuild_empties(as_list(array)), kind)
    if not is_.is_nested(kind) or is_.is_run_end_encoded(kind) or is_.is_union(kind):
        return array
    own = 1 if is_.is_fixed_size_list(kind) else 3 if is_.is_list_view(kind) or is_.is_large_list_view(kind) else 2
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:own], offset=array.offset, children=[rebuild_empties(array.values)]
    )
