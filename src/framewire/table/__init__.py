"""Anything tabular to one normalised ``pa.Table``, exact or refused by name. The rule: ``docs/reference/types.md``.

::

    value -> pa.Table                       _rows, _pandas, _capsule: what its library hands over
          -> names and types                _check, _types: refused by name, before any value is read
          -> validated, in few batches      _check, _sliced_empties, _chunks, _time_range
          -> wire types                     _decode: run ends, list views and extension types decoded
          -> compacted                      framewire.arrow.compact: no byte of a row that is not in it
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from framewire.arrow.compact import compact
from framewire.arrow.take import rows_without_columns
from framewire.table import _capsule, _pandas, _rows
from framewire.table._check import check_names, column_names, validate
from framewire.table._chunks import merge_small
from framewire.table._decode import decode_column
from framewire.table._sliced_empties import rebuild_sliced_empties
from framewire.table._time_range import check_time_range
from framewire.table._types import wire_field
from framewire.typing import Tabular

__all__ = ["to_table"]


def to_table(data: Tabular, *, nan_is_null: bool = True) -> pa.Table:
    """Normalise anything tabular. The input is not changed; readers and lazy frames are read once.

    Args:
        data: A ``pa.Table``, ``RecordBatch`` or ``RecordBatchReader``, a ``pl.DataFrame`` or ``LazyFrame`` (collected),
            a ``pd.DataFrame``, a duckdb relation, anything with ``__arrow_c_stream__``, or a sequence of dicts. A
            reader that was read before is an empty table: nothing tells it apart.
        nan_is_null: Whether NaN in numpy float and object columns of a ``pd.DataFrame`` becomes null: it is pandas' mark for a
            missing value. NaN stays NaN in all other input, and in pandas' nullable and Arrow-backed columns.

    Returns:
        The same rows: column names are unique text; every type crosses to every output form exactly; no schema
        metadata, and field metadata only where Polars' Enums and Categoricals need it; few chunks; no byte of a row
        that is not in it. A table without columns keeps its row count.

    Raises:
        NotATableError: ``data`` is not a table; lists what is accepted.
        ColumnNameError: A column name is not text, appears twice, or is ``_row_id``.
        UnsupportedTypeError: A column's type has no exact form on the wire.
        UnsupportedValueError: A value has none in its column; names column, row and kind.
        PublishError: A closed duckdb relation, or an Arrow stream that breaks off.
    """
    raw, is_checked = _read(data, nan_is_null)
    names = column_names(raw)
    check_names(names)
    if not names:
        return rows_without_columns(raw.num_rows)
    fields = [wire_field(field) for field in raw.schema]  # a refused type costs no pass over the values
    raw = rebuild_sliced_empties(raw)
    if not is_checked:
        validate(raw)
    merged = merge_small(raw)
    check_time_range(merged)
    return compact(_in_wire_types(merged, fields))


def _read(data: Any, nan_is_null: bool) -> tuple[pa.Table, bool]:
    """The table as its library hands it over, and whether its buffers are known to be well formed.

    Polars and our own conversion check what they make; everything else may come from a buffer of anyone's.
    """
    if type(data).__module__.partition(".")[0] == "narwhals" and hasattr(data, "to_native"):
        data = data.to_native()  # or a Polars Object column would pass as the bytes of its addresses
    if isinstance(data, pa.Table):
        return data, False
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data]), False
    if isinstance(data, pa.RecordBatchReader):
        return _capsule.from_reader(data), False
    if _capsule.is_polars(data, "LazyFrame"):
        data = data.collect()
    if _capsule.is_polars(data, "DataFrame"):
        return _capsule.from_polars(data), True
    if _pandas.is_pandas(data, "DataFrame"):
        return _pandas.from_pandas(data, nan_is_null=nan_is_null), False
    if _capsule.is_duckdb(data):
        return _capsule.from_duckdb(data), False
    # Series and arrays export streams of a column, and some of them are sequences too.
    is_column = isinstance(data, (pa.Array, pa.ChunkedArray)) or type(data).__name__ in ("Series", "Index")
    if not is_column and hasattr(data, "__arrow_c_stream__"):
        return _capsule.from_stream(data), False
    if not is_column and _rows.is_rows(data):
        return _rows.from_rows(data), True
    raise _rows.not_a_table(data)


def _in_wire_types(table: pa.Table, fields: list[pa.Field]) -> pa.Table:
    """Every column in its wire type; arrays that are there already are not copied."""
    columns = [decode_column(column, field) for column, field in zip(table.columns, fields, strict=True)]
    fields = [_truthful(field, column) for field, column in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _truthful(field: pa.Field, column: pa.ChunkedArray) -> pa.Field:
    """A column with nulls is nullable, whatever its field says."""
    return field if field.nullable or not column.null_count else field.with_nullable(True)
