"""``list[dict]`` through ``to_table``, and what is no table."""

from __future__ import annotations

import re
import uuid
from collections.abc import Coroutine
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from framewire import to_table
from framewire.errors import ColumnNameError, NotATableError, UnsupportedValueError


async def _coroutine() -> None: ...


def test_late_keys_and_late_values_survive() -> None:
    rows: list[dict[str, Any]] = [{"sku": n} for n in range(150)]
    table = to_table([*rows, {"sku": 2.9, "note": "late"}])
    assert table.column_names == ["sku", "note"]
    assert table["sku"].to_pylist()[-2:] == [149.0, 2.9]
    assert table["note"].to_pylist() == [None] * 150 + ["late"]


def test_uuids_are_text() -> None:
    assert to_table([{"u": uuid.UUID(int=5), "k": 1}])["u"].to_pylist() == [str(uuid.UUID(int=5))]


def test_decimals_of_any_scale_survive() -> None:
    values = [Decimal("1.2")] * 200 + [Decimal("1.2345")]
    assert to_table([{"a": value} for value in values])["a"].to_pylist() == values


def test_rows_are_not_changed() -> None:
    rows = [{"a": [{"b": None}]}, {"c": 1.5}]
    to_table(rows)
    assert rows == [{"a": [{"b": None}]}, {"c": 1.5}]


def test_row_id_is_reserved() -> None:
    with pytest.raises(ColumnNameError, match="already called '_row_id'"):
        to_table([{"_row_id": 9}])


def test_surrogates_are_refused() -> None:
    with pytest.raises(UnsupportedValueError, match="Column 's', row 1: text with a lone surrogate"):
        to_table([{"s": "ok"}, {"s": "a\ud800b"}])


@pytest.mark.parametrize("rows", [[], [{}], [{}, {}], ()])
def test_rows_without_columns(rows: Any) -> None:
    table = to_table(rows)
    assert (table.num_rows, table.num_columns) == (len(rows), 0)


@pytest.mark.parametrize(
    ("data", "fix"),
    [
        (None, r"return \[\]"),
        ("a string", ""),
        (b"bytes", ""),
        (5, ""),
        (range(3), ""),
        ({"a": 1}, r"\[data\]"),
        ({"a": [1, 2]}, r"pl.DataFrame\(data\)"),
        (pl.Series([1]), r"to_frame\(\)"),
        (pd.Series([1]), r"to_frame\(\)"),
        (pd.Index([1]), ""),
        (pa.array([1]), "pa.table"),
        (pa.chunked_array([[1]]), "pa.table"),
        (({} for _ in range(2)), r"list\(data\)"),
        (np.zeros((2, 2)), ""),
        (object(), ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_table_is_told_what_is(data: Any, fix: str) -> None:
    with pytest.raises(NotATableError) as caught:
        to_table(data)
    assert re.search(fix, caught.value.hint)
    assert "is not a table" in caught.value.message
    for accepted in ("polars DataFrame", "pyarrow Table", "pandas DataFrame", "duckdb relation", "list of dicts"):
        assert accepted in caught.value.hint


def test_a_coroutine_and_a_connection_are_told_what_to_do() -> None:
    coroutine: Coroutine[Any, Any, None] = _coroutine()
    with pytest.raises(NotATableError, match="Await it"):
        to_table(coroutine)
    coroutine.close()
    with duckdb.connect() as connection, pytest.raises(NotATableError, match=r"connection\.sql"):
        to_table(connection)


@pytest.mark.parametrize("rows", [[1, 2], [[1]], ["a"], [None], [{"a": 1}, ("a", 1)]])
def test_sequences_of_something_else(rows: Any) -> None:
    with pytest.raises(NotATableError, match=r"Row \d is of type"):
        to_table(rows)
