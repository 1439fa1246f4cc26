from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from framewire.errors import ArgumentError, ColumnNameError, UnknownColumnError
from framewire.split import Split, add_row_id, parse_domains, split


def test_row_id_comes_first_and_nothing_is_copied() -> None:
    table = pa.table({"a": pa.chunked_array([[1.5], [2.5, 3.5]])})
    numbered = add_row_id(table)
    assert numbered.column_names == ["_row_id", "a"]
    assert numbered.schema.field(0) == pa.field("_row_id", pa.int64(), nullable=False)
    assert numbered.column(0).to_pylist() == [0, 1, 2]
    assert numbered.column(1).chunk(1).buffers()[1].address == table.column(0).chunk(1).buffers()[1].address


def test_a_row_id_of_ones_own_is_refused() -> None:
    with pytest.raises(ColumnNameError, match="already has a column '_row_id'.*Rename or drop"):
        add_row_id(pa.table({"_row_id": [9], "v": [1]}))


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("", []),
        (" a , b,,a ", ["a", "b"]),
        ('["a", "b,c"]', ["a", "b,c"]),
        (["a", "a"], ["a"]),
        ("_row_id", ["_row_id"]),
    ],
)
def test_domains(written: Any, names: list[str]) -> None:
    assert parse_domains(written) == names


@pytest.mark.parametrize("written", ['["a"', "[1]", [1], '[["a"]]'])
def test_malformed_domains_are_errors(written: Any) -> None:
    with pytest.raises(ArgumentError, match="Write the column names as"):
        parse_domains(written)


def test_split_keeps_both_orders() -> None:
    assert split(["a", "b", "c"], ["c", "_row_id"]) == Split(("c",), ("a", "b"))
    with pytest.raises(UnknownColumnError, match="no column 'oops'.*The columns are: a, b"):
        split(["a", "b"], ["a", "oops"])
