"""Nested casts change the leaves and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from framewire.arrow.cast import cast_array, cast_column, cast_table
from framewire.arrow.types import plain_schema
from framewire.testing import check_tables, exact_values

NULLS = [pa.list_(pa.null()), pa.large_list(pa.null()), pa.list_(pa.null(), 2), pa.map_(pa.string(), pa.null())]


@pytest.mark.parametrize("kind", NULLS, ids=str)
def test_lists_of_nulls_beside_what_is_cast_keep_their_length(kind: pa.DataType) -> None:
    nulls = pa.array([[("a", None)] * 2 if pa.types.is_map(kind) else [None] * 2] * 2, kind)
    both = pa.StructArray.from_arrays([pa.array(["x", "y"], pa.string_view()), nulls], ["text", "nulls"])
    cast = cast_array(both, pa.struct([("text", pa.large_string()), ("nulls", kind)]))
    cast.validate(full=True)
    assert cast.to_pylist() == both.to_pylist()
    with pytest.raises(pa.ArrowInvalid):  # once this passes, pyarrow's own cast will do
        both.cast(cast.type).validate(full=True)


def test_every_type_keeps_its_values_without_views() -> None:
    def check(table: pa.Table) -> None:
        for part in (table, table[1:]):
            plain = cast_table(part, plain_schema(part.schema))
            plain.validate(full=True)
            assert plain.num_rows == part.num_rows
            assert [exact_values(column) for column in plain.columns] == [
                exact_values(column) for column in part.columns
            ]

    check_tables(check)


def test_a_value_that_would_change_is_an_error() -> None:
    column = pa.chunked_array([pa.array([[{"t": 1}]], pa.list_(pa.struct([("t", pa.timestamp("ns"))])))])
    with pytest.raises(pa.ArrowInvalid):
        cast_column(column, pa.list_(pa.struct([("t", pa.timestamp("us"))])))
