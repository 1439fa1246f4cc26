"""pa.Table -> pl.DataFrame. Types that Polars lacks are refused; values that it would alter silently are found before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from framewire.arrow import nested, polars_types, types
from framewire.arrow.ranges import Range
from framewire.arrow.threads import in_threads
from framewire.errors import BadBodyError
from framewire.frame._exact import FormLimits, day_range, exact, is_exact

__all__ = ["to_polars"]


def to_polars(table: pa.Table) -> pl.DataFrame:
    """``table`` as a Polars frame, sharing its buffers where Polars can.

    Raises:
        UnsupportedTypeError: Polars has no counterpart of a column's type.
        UnsupportedValueError: Polars would alter a value.
        BadBodyError: Polars refuses the table for another reason (a Rust panic included).
    """
    # Without the schema's metadata: it means nothing to Polars, which panics when it is not UTF-8.
    table = table.replace_schema_metadata(None)
    if _holds_exactly(table.schema):
        return _convert(_text_as_views(table))
    columns = [exact(column, field, _POLARS) for column, field in zip(table.columns, table.schema, strict=True)]
    fields = [field.with_type(column.type) for column, field in zip(columns, table.schema, strict=True)]
    for column, field in zip(columns, fields, strict=True):
        _check_enums(column, field)
    return _convert(_text_as_views(pa.Table.from_arrays(columns, schema=pa.schema(fields))))


def _text_as_views(table: pa.Table) -> pa.Table:
    """Cast text and binary columns, from 1 MiB in all, to views, Polars' own layout: Arrow does so faster, columns in threads.

    A view reaches 2 GiB of its buffer: columns with a larger one are left to Polars, which copies them.
    """
    text = [at for at, dtype in enumerate(table.schema.types) if dtype.id in _VIEWS]
    if sum(table.column(at).nbytes for at in text) < _THREADS_BYTES:  # starting threads takes longer than the cast
        return table
    columns = list(table.columns)
    for at, views in zip(text, in_threads(lambda at: _views(columns[at]), text), strict=True):
        columns[at] = views
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _views(column: pa.ChunkedArray) -> pa.ChunkedArray:
    data = [chunk.buffers()[2] for chunk in column.chunks]
    fits = all(buffer is None or buffer.size <= _VIEW_REACH for buffer in data)
    return column.cast(_VIEWS[column.type.id]) if fits else column


_VIEWS: Final = {
    pa.string().id: pa.string_view(),
    pa.large_string().id: pa.string_view(),
    pa.binary().id: pa.binary_view(),
    pa.large_binary().id: pa.binary_view(),
}
_VIEW_REACH: Final = (1 << 31) - 1
_THREADS_BYTES: Final = 1 << 20


def _holds_exactly(schema: pa.Schema) -> bool:
    """Whether Polars holds every value of every type as it is. Asked once for each schema."""
    key = schema.serialize().to_pybytes()
    return _remembered(key) if len(key) <= _REMEMBERED_BYTES else _are_exact(schema)


@lru_cache(maxsize=64)
def _remembered(key: bytes) -> bool:
    return _are_exact(pa.ipc.read_schema(pa.py_buffer(key)))


def _are_exact(schema: pa.Schema) -> bool:
    return all(is_exact(field, _POLARS) and not _has_dictionary(field.type) for field in schema)


def _has_dictionary(dtype: pa.DataType) -> bool:
    """A serialized schema does not tell a dictionary of dictionaries from a plain one, and Enums are dictionaries as well."""
    return types.any_type(pa.types.is_dictionary, dtype)


_REMEMBERED_BYTES: Final = 16 << 10
"""Longest schema that is remembered, so that those of untrusted peers take a megabyte at most."""


def _convert(table: pa.Table) -> pl.DataFrame:
    try:
        # Through the C stream, which takes the batches as they are: pl.from_arrow joins them into one, a copy of the whole
        # table, and is twice as slow without it; pl.DataFrame of a pa.Table takes 3 to 7 times as long.
        frame = pl.DataFrame(_Stream(table))
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except (Exception, pl.exceptions.PanicException) as exc:
        # The panic is a BaseException, which no handler of Exception would see.
        raise BadBodyError(
            f"Polars could not take the table ({type(exc).__name__}).",
            hint="Annotate the frame parameter as pa.Table to receive it as it is.",
        ) from None
    if not isinstance(frame, pl.DataFrame):
        raise BadBodyError("The body has no columns, so Polars gives no frame.")
    return frame


class _Stream:
    """A table that exports nothing but its C stream."""

    __slots__ = ("_table",)

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _range(dtype: pa.DataType) -> Range:
    return polars_types.exact_range(dtype) or day_range(dtype)


def _holds_nested(dtype: pa.DataType) -> bool:
    """Arrays of width 0 break the import; a struct's field names end at a NUL there."""
    if pa.types.is_struct(dtype):
        return not any("\0" in field.name for field in dtype)
    return not pa.types.is_fixed_size_list(dtype) or dtype.list_size > 0


_POLARS: Final = FormLimits("Polars", polars_types.exact_type, _range, _holds_nested)


def _check_enums(column: pa.ChunkedArray, field: pa.Field) -> None:
    """Refuse a dictionary with a value outside the categories in its metadata: Polars would make it null."""
    for chunk in column.chunks if _has_dictionary(field.type) else ():
        for array, enum in _enums(chunk, field):
            dtype = _convert(pa.schema([enum]).empty_table()).dtypes[0]
            if isinstance(dtype, pl.Enum):
                values = array.dictionary.cast(pa.large_string()).drop_null()
                known = pc.is_in(values, value_set=dtype.categories.to_arrow().cast(pa.large_string()))
                if not pc.all(known, min_count=0).as_py():
                    raise BadBodyError(f"Column {field.name!r} is an Enum with a value outside its categories.")


def _enums(array: pa.Array, field: pa.Field) -> Iterator[tuple[pa.Array, pa.Field]]:
    """Dictionary arrays within ``array`` whose field is marked as an Enum, with that field."""
    if pa.types.is_dictionary(array.type):
        if types.is_enum(field):
            yield array, field
        return
    for child, child_field in zip(nested.children(array), types.children(field.type), strict=True):
        yield from _enums(child, child_field)
