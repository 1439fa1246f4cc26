"""``list[dict]`` as a table, and the error for values that are almost a table."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from framewire.errors import NotATableError
from framewire.table._capsule import is_polars
from framewire.table._pandas import is_pandas
from framewire.values.infer import infer_rows
from framewire.values.location import name_of

ACCEPTED: Final = (
    "Return a polars DataFrame or LazyFrame, a pyarrow Table, RecordBatch or RecordBatchReader, a pandas DataFrame, a "
    "duckdb relation, anything with __arrow_c_stream__, or a list of dicts (one a row)."
)


def from_rows(rows: Sequence[Any]) -> pa.Table:
    """Rows as a table; see :func:`framewire.values.infer.infer_rows`."""
    return infer_rows(rows)


def is_rows(data: Any) -> bool:
    """Whether ``data`` is a sequence whose items may be rows."""
    return isinstance(data, Sequence) and not isinstance(data, (str, bytes, bytearray, memoryview, range))


def not_a_table(data: Any) -> NotATableError:
    """The error for any other value: its type, the likeliest fix, and what is accepted."""
    hint = _likeliest_fix(data)
    return NotATableError(f"{name_of(type(data))} is not a table.", hint=f"{hint} {ACCEPTED}" if hint else ACCEPTED)


def _likeliest_fix(data: Any) -> str:
    if data is None:
        return "The function returned nothing; for no rows return []."
    if isinstance(data, Mapping):
        if any(isinstance(value, (list, tuple)) for value in data.values()):
            return "For a dict of columns return pl.DataFrame(data) or pa.table(data)."
        return "For one row return [data]."
    if is_polars(data, "Series") or is_pandas(data, "Series"):
        return "Use its to_frame()."
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return "Name the column: pa.table({'name': data})."
    if isinstance(data, Coroutine) or hasattr(data, "__await__"):
        return "Await it first."
    if isinstance(data, Iterator):
        return "Use list(data), or pa.RecordBatchReader.from_batches for batches."
    if type(data).__module__.partition(".")[0] == "duckdb" or type(data).__name__ == "DuckDBPyConnection":
        return "Return connection.sql(query), which is a relation."
    if hasattr(data, "to_reader"):
        return "Use its to_reader()."
    return ""
