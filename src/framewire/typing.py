"""Types shared by every layer. Importing this module imports no dataframe library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["ArrowStreamExportable", "Frame", "JSONValue", "RowIds", "Tabular"]


@runtime_checkable
class ArrowStreamExportable(Protocol):
    """Anything that exports the Arrow C stream interface (pyarrow, Polars, pandas >= 2.2, duckdb, ibis, narwhals...)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a PyCapsule holding an ``ArrowArrayStream``."""
        ...


JSONValue: TypeAlias = "None | bool | int | float | str | list[JSONValue] | dict[str, JSONValue]"
"""A value that ``json.dumps(..., allow_nan=False)`` accepts."""

Tabular: TypeAlias = (
    "ArrowStreamExportable | pa.Table | pa.RecordBatch | pa.RecordBatchReader | pl.DataFrame | pl.LazyFrame"
    " | pd.DataFrame | Sequence[Mapping[str, Any]]"
)
"""Types that a resource tool may return and ``publish`` accepts."""

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pa.Table | pa.RecordBatchReader | pd.DataFrame | list[dict[str, Any]]"
"""Types that a consumer function may ask for."""

RowIds: TypeAlias = "Sequence[int | float | str] | str | pa.Array | pa.ChunkedArray"
"""Row ids as a caller may write them: integers, whole-number text or floats, and inclusive ranges such as ``"5-99"``."""
