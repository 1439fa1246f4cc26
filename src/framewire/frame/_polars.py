"""pa.Table -> pl.DataFrame. What Polars lacks is refused, what it would alter in silence is found before."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from framewire.arrow.threads import in_threads
from framewire.errors import BadBodyError
from framewire.frame._exact import Limits, Target, clock, exact, is_plain, leaves, needs_a_look

__all__ = ["to_polars"]

_t = pa.types
_ENUM_METADATA: Final = b"_PL_ENUM_VALUES"
_INT64_MAX: Final = (1 << 63) - 1
_MAX_DIGITS: Final = 38


def to_polars(table: pa.Table) -> pl.DataFrame:
    """``table`` as a Polars frame, sharing its buffers where Polars can.

    Raises:
        UnsupportedTypeError: Polars has no counterpart of a column's type.
        UnsupportedValueError: Polars would alter a value.
        BadBodyError: Polars refuses the table for another reason (a Rust panic included).
    """
    # Without the schema's metadata: it means nothing to Polars, which panics when it is not UTF-8.
    table = table.replace_schema_metadata(None)
    if _taken_as_it_is(table.schema):
        return _convert(_text_as_views(table))
    columns = [exact(column, field, _POLARS) for column, field in zip(table.columns, table.schema, strict=True)]
    fields = [field.with_type(column.type) for column, field in zip(columns, table.schema, strict=True)]
    for column, field in zip(columns, fields, strict=True):
        _check_enums(column, field)
    return _convert(_text_as_views(pa.Table.from_arrays(columns, schema=pa.schema(fields))))


def _text_as_views(table: pa.Table) -> pa.Table:
    """Cast large text and binary columns to views, Polars' own layout: Arrow does so faster than Polars, columns in threads.

    A view reaches 2 GiB of its buffer: columns with a larger one are left to Polars, which copies them.
    """
    if table.nbytes < _THREADS_BYTES:  # starting threads takes longer than the cast
        return table
    views = [_VIEWS.get(column.type) if _fits_views(column) else None for column in table.columns]
    cast = [at for at, view in enumerate(views) if view is not None]
    columns = list(table.columns)
    for at, column in zip(cast, in_threads(lambda at: columns[at].cast(views[at]), cast), strict=True):
        columns[at] = column
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)) if cast else table


def _fits_views(column: pa.ChunkedArray) -> bool:
    return all(buffer is None or buffer.size < 1 << 31 for chunk in column.chunks for buffer in chunk.buffers()[2:])


_VIEWS: Final = {
    pa.string(): pa.string_view(),
    pa.large_string(): pa.string_view(),
    pa.binary(): pa.binary_view(),
    pa.large_binary(): pa.binary_view(),
}
_THREADS_BYTES: Final = 1 << 20


def _taken_as_it_is(schema: pa.Schema) -> bool:
    """Whether Polars holds every value of every type exactly, so that no column needs a look. Asked once for each schema."""
    key = schema.serialize().to_pybytes()
    return _remembered(key) if len(key) <= _REMEMBERED_BYTES else _needs_no_look(schema)


@lru_cache(maxsize=64)
def _remembered(key: bytes) -> bool:
    return _needs_no_look(pa.ipc.read_schema(pa.py_buffer(key)))


def _needs_no_look(schema: pa.Schema) -> bool:
    return not any(_has_dictionary(field.type) or needs_a_look(field, _POLARS) for field in schema)


def _has_dictionary(type_: pa.DataType) -> bool:
    """A serialized schema does not tell a dictionary of dictionaries from a plain one, and Enums are dictionaries as well."""
    return _t.is_dictionary(type_) or any(_has_dictionary(type_.field(i).type) for i in range(type_.num_fields))


_REMEMBERED_BYTES: Final = 16 << 10
"""Longest schema that is remembered, so that a stranger's fill a megabyte at most."""


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
    """A table of which nothing shows but its C stream."""

    __slots__ = ("_table",)

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _leaf_type(type_: pa.DataType) -> pa.DataType | None:
    if _t.is_decimal(type_):
        return _decimal_type(type_)
    if _t.is_date64(type_):
        return pa.date32()  # Polars would make it a Datetime; the cast checks that these are whole days
    if _t.is_timestamp(type_):
        return type_ if type_.tz is None or _has_zone(type_.tz) else None
    if _t.is_fixed_size_binary(type_):
        return type_ if type_.byte_width else pa.binary()
    return type_ if is_plain(type_) else None


def _decimal_type(type_: pa.DataType) -> pa.DataType | None:
    """Polars has decimals of at most 38 digits whose scale lies between 0 and the precision."""
    scale = max(type_.scale, 0)
    precision = max(type_.precision + scale - type_.scale, scale)
    if precision > _MAX_DIGITS:
        return None
    return pa.decimal128(precision, scale)


def _has_zone(zone: str) -> bool:
    """Whether Polars knows a time zone: the database's names and, of fixed offsets, whole hours."""
    if "\0" in zone:  # the import would end there
        return False
    try:
        pl.from_arrow(pa.array([], pa.timestamp("us", zone)))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False
    return True


def _limits(type_: pa.DataType) -> Limits:
    if (_t.is_timestamp(type_) or _t.is_duration(type_)) and type_.unit == "s":
        # Polars has no seconds: it multiplies by 1000, and wraps.
        return -(_INT64_MAX // 1000), _INT64_MAX // 1000
    return clock(type_)


def _nested(type_: pa.DataType) -> bool:
    """Arrays of width 0 break the import; a struct's field names end at a NUL there."""
    if _t.is_struct(type_):
        return not any("\0" in type_.field(i).name for i in range(type_.num_fields))
    return not _t.is_fixed_size_list(type_) or type_.list_size > 0


_POLARS: Final = Target("Polars", _leaf_type, _limits, _nested)


def _check_enums(column: pa.ChunkedArray, field: pa.Field) -> None:
    """Refuse a dictionary with a value outside the categories in its metadata: Polars would make it null."""
    for chunk in column.chunks:
        for leaf, leaf_field in leaves(chunk, field) if _has_enum(field) else ():
            if not _t.is_dictionary(leaf.type) or not _is_enum(leaf_field):
                continue
            dtype = _convert(pa.schema([leaf_field]).empty_table()).dtypes[0]
            if isinstance(dtype, pl.Enum):
                values = leaf.dictionary.cast(pa.large_string()).drop_null()
                known = pc.is_in(values, value_set=dtype.categories.to_arrow().cast(pa.large_string()))
                if not pc.all(known, min_count=0).as_py():
                    raise BadBodyError(f"Column {field.name!r} is an Enum with a value outside its categories.")


def _is_enum(field: pa.Field) -> bool:
    return any(key.startswith(_ENUM_METADATA) for key in field.metadata or ())


def _has_enum(field: pa.Field) -> bool:
    type_ = field.type
    return _is_enum(field) or any(_has_enum(type_.field(i)) for i in range(type_.num_fields))
