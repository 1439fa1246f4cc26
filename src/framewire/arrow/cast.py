"""Nested arrays cast leaf by leaf. pyarrow's own cast of a list of nulls gives one null where there were many (pyarrow 26)."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as is_


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """``table`` as ``schema``, of the same columns; those that have their type already are not copied."""
    columns = [cast_column(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
    # Without columns, from_arrays would lose the count of rows.
    return pa.Table.from_arrays(columns, schema=schema) if columns else table


def cast_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """``column`` as ``kind``; see :func:`cast_array`."""
    return pa.chunked_array([cast_array(chunk, kind) for chunk in column.chunks], kind)


def cast_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as ``kind``, which has the same nesting and differs in its leaves only.

    Raises:
        pyarrow.ArrowInvalid: A value of a leaf would change, one that lies under a null parent included.
    """
    if array.type.equals(kind, check_metadata=True):
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return cast_array(array.storage, kind)
    if is_.is_dictionary(kind):
        values = cast_array(array.dictionary, kind.value_type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered, safe=False)
    if is_.is_struct(kind) and len(kind):
        children = [cast_array(array.field(at), field.type) for at, field in enumerate(kind)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if is_.is_map(kind):
        parts = [cast_array(array.keys, kind.key_type), cast_array(array.items, kind.item_type)]
        child = pa.StructArray.from_arrays(parts, fields=[kind.key_field, kind.item_field])
    elif is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        child = cast_array(array.values, kind.value_type)
    else:
        return array.cast(kind)
    own = array.buffers()[: 1 if is_.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=[child])
