"""One drawn table in every form that a tool may return, and what each of them looks like before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

from framewire import to_table
from framewire.testing import kinds_of

Make = Callable[[pa.Table], Any]

DUCKDB_KINDS: Final = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "string",
     "large_string", "string_view", "binary", "large_binary", "list", "large_list", "decimal128", "date32", "null"}
)  # fmt: skip
"""Types that duckdb itself takes in and gives back unaltered: what it does to the others is not ours to test."""


class Foreign:
    """A table of a library that nobody listed."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _largest_batch(table: pa.Table) -> pa.RecordBatch:
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in table.schema.types], schema=table.schema)
    return max(table.to_batches(), key=len, default=nothing)


def _polars(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(to_table(table))
    assert isinstance(frame, pl.DataFrame)
    return frame


ROUTES: Final[dict[str, Make]] = {
    "pa.Table": lambda table: table,
    "pa.RecordBatch": _largest_batch,
    "pa.RecordBatchReader": lambda table: table.to_reader(),
    "__arrow_c_stream__": Foreign,
    "pl.DataFrame": _polars,
    "pl.LazyFrame": lambda table: _polars(table).lazy(),
    "pd.DataFrame": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True),
}
"""Those that take every type; rows as dicts and duckdb's relations take some."""


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as a tool's author would write them: maps as lists of entries, which may repeat keys."""
    columns = {name: [_python(scalar) for scalar in table.column(name)] for name in table.column_names}
    return [{name: values[row] for name, values in columns.items()} for row in range(table.num_rows)]


def _python(scalar: Any) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(kind):
        return _python(scalar.value)
    if pa.types.is_struct(kind):
        return {name: _python(value) for name, value in scalar.items()}
    if pa.types.is_map(kind):
        return [{"key": _python(entry[0]), "value": _python(entry[1])} for entry in scalar.values]
    if pa.types.is_nested(kind):
        return [_python(value) for value in scalar.values]
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        wide = pa.types.is_timestamp(kind) and pa.timestamp("us", kind.tz)
        narrow = wide or (pa.time64("us") if pa.types.is_time(kind) else pa.duration("us"))
        return scalar.cast(narrow).as_py()
    return scalar.as_py()


def through_duckdb(table: pa.Table, connection: duckdb.DuckDBPyConnection) -> Any:
    """A relation over the columns whose types duckdb does not alter, or None where there is none."""
    names = [field.name for field in table.schema if kinds_of(field.type) <= DUCKDB_KINDS]
    return connection.from_arrow(table.select(names)) if names else None


def look_at(data: Any) -> Any:
    """Everything that publishing could change, as values that compare."""
    if isinstance(data, pa.RecordBatchReader):
        return data.schema
    if isinstance(data, Foreign):
        return look_at(data._table)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return str(data.schema), [list(map(_buffers, getattr(column, "chunks", [column]))) for column in data.columns]
    if isinstance(data, pl.LazyFrame):
        return look_at(data.collect())
    if isinstance(data, pl.DataFrame):
        return data.schema, look_at(pa.table(data))
    if isinstance(data, pd.DataFrame):
        return list(data.columns), data.index.tolist(), data.dtypes.tolist(), look_at(_of_pandas(data))
    return repr(data)


def _of_pandas(frame: Any) -> pa.Table:
    return pa.table({name: frame[name].array.__arrow_array__() for name in frame.columns})


def _buffers(array: pa.Array) -> list[bytes | None]:
    """The bytes of every buffer that an array reaches, dictionaries included."""

    def walk(part: pa.Array) -> Iterator[pa.Buffer | None]:
        yield from part.buffers()
        if pa.types.is_dictionary(part.type):
            yield from walk(part.dictionary)

    return [None if buffer is None else buffer.to_pybytes() for buffer in walk(array)]


# --- what a consumer received, as an Arrow table whose values the model reads -----------------------------------------


def as_arrow(made: Any) -> pa.Table:
    """A frame in any form but ``list[dict]``."""
    if isinstance(made, pa.RecordBatchReader):
        return made.read_all()
    if isinstance(made, pl.LazyFrame):
        made = made.collect()
    if isinstance(made, pl.DataFrame):
        return pa.table(made)
    return _of_pandas(made) if isinstance(made, pd.DataFrame) else made
