"""Nested arrays cast leaf by leaf. pyarrow's own cast of a list of nulls gives one null where there were many (pyarrow 26)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from framewire.arrow import types
from framewire.arrow.nested import children, with_children
from framewire.arrow.threads import in_threads


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """``table`` as ``schema``, of the same columns; those that have their type already are not copied."""
    columns = [cast_column(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
    # Without columns, from_arrays would lose the count of rows.
    return pa.Table.from_arrays(columns, schema=schema) if columns else table


def without_views(table: pa.Table) -> pa.Table:
    """``table`` with string and binary views as ``large_string`` and ``large_binary``, at any depth and as dictionary values.

    pyarrow has no kernels that filter, take, sort or join views, and pandas dies of some. Columns without views are not copied.
    """
    changed = [i for i, dtype in enumerate(table.schema.types) if types.any_type(types.is_view, dtype)]
    if not changed:
        return table

    def cast(i: int) -> pa.ChunkedArray:
        return cast_column(table.column(i), types.plain_type(table.schema.field(i).type))

    # Views of a few rows are cast in less time than a thread takes to start.
    new = in_threads(cast, changed) if len(changed) * table.num_rows >= _THREAD_VALUES else list(map(cast, changed))
    for i, column in zip(changed, new, strict=True):
        table = table.set_column(i, table.schema.field(i).with_type(column.type), column)
    return table


_THREAD_VALUES: Final = 1 << 16


def cast_column(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    """``column`` as ``dtype``; see :func:`cast_array`."""
    return pa.chunked_array([cast_array(chunk, dtype) for chunk in column.chunks], dtype)


def cast_array(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """``array`` as ``dtype``, which has the same nesting and differs in its leaves only.

    Raises:
        pyarrow.ArrowInvalid: A value of a leaf would change, one that lies under a null parent included.
    """
    if array.type.equals(dtype, check_metadata=True):
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return cast_array(array.storage, dtype)
    fields = types.children(dtype)
    if not fields:
        return array.cast(dtype)
    cast = [cast_array(child, field.type) for child, field in zip(children(array), fields, strict=True)]
    return with_children(array, cast, dtype)
