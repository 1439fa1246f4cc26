from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire import DataPlane, Settings, fetch
from framewire.arrow import read, write
from framewire.arrow.merged import MAX_BYTES, merged
from framewire.frame import Form, to_form
from framewire.testing import exact_values, tables

WIDTHS = [
    pa.int8(),
    pa.bool_(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.decimal128(25, 3),
    pa.decimal256(50, 1),
    pa.binary(3),
]
"""Kinds that are merged whatever their values are."""


def _written(table: pa.Table) -> tuple[pa.Table, tuple[memoryview, ...]]:
    """Written as large tables are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(write, "_LARGE_BYTES", 0)
        parts = write.collect(table)
    buffer = write.gather(parts, sum(map(len, parts)))
    decoded = read.decode(buffer, rows=table.num_rows, max_rows=1 << 20, max_bytes=1 << 30, validate=True)
    return decoded, parts


@given(tables(), st.lists(st.integers(0, 20), max_size=4))
def test_any_chunks_of_any_table_are_the_same_table(table: pa.Table, cuts: list[int]) -> None:
    whole = pa.concat_tables([table] * 3) if table.num_columns else table
    places = sorted(
        {
            0,
            whole.num_rows,
            *(min(8 * cut, whole.num_rows) for cut in cuts),
            *(cut for cut in cuts if cut < whole.num_rows),
        }
    )
    chunked = pa.concat_tables([whole.slice(a, b - a) for a, b in pairwise(places)] or [whole])
    got, _ = _written(chunked)
    assert got.num_rows == whole.num_rows
    assert [exact_values(column) for column in got.columns] == [exact_values(column) for column in whole.columns]


@pytest.mark.parametrize("kind", WIDTHS, ids=str)
@pytest.mark.parametrize("with_nulls", ["none", "first", "last", "all"])
@pytest.mark.parametrize("sizes", [(8, 16, 3), (64, 64), (16, 0, 24, 5)])
def test_columns_of_one_width_become_one_batch(kind: pa.DataType, with_nulls: str, sizes: tuple[int, ...]) -> None:
    chunks = []
    for number, size in enumerate(sizes):
        values: list[Any] = [i % 2 if pa.types.is_boolean(kind) else i % 100 for i in range(size)]
        array = (
            pa.array([b"%03d" % v for v in values], kind)
            if kind == pa.binary(3)
            else pa.array(values).cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
        )
        hidden = (
            with_nulls == "all"
            or (with_nulls == "first" and number == 0)
            or (with_nulls == "last" and number == len(sizes) - 1)
        )
        mask = np.arange(size) % 3 == 1 if hidden else np.zeros(size, bool)
        chunks.append(pa.array(array.to_pylist(), kind, mask=mask))
    table = pa.table(
        {"x": pa.chunked_array(chunks, kind), "v": pa.chunked_array([["short"] * s for s in sizes], pa.string_view())}
    )
    got, _ = _written(table)
    assert got.column(0).num_chunks == 1
    assert got.equals(table.combine_chunks())
    assert got.column(0).null_count == table.column(0).null_count


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([["x"] * 8] * 2),
        pa.chunked_array([["a text that is longer than a view"] * 8] * 2, pa.string_view()),
        pa.chunked_array([[[1]] * 8] * 2),
        pa.chunked_array([[None] * 8] * 2, pa.null()),
        pa.chunked_array([[1] * 7] * 2),
    ],
)
def test_what_would_have_to_be_altered_stays_apart(column: pa.ChunkedArray) -> None:
    assert merged(pa.table({"x": column})) is None


def test_nothing_is_copied_and_batches_stay_of_a_size() -> None:
    chunk = np.arange(1 << 19)
    table = pa.table({name: pa.chunked_array([chunk] * 48) for name in ("a", "b")})
    got, parts = _written(table) if table.num_rows < 1 << 20 else (None, write.collect(table))
    assert got is None
    address = pa.py_buffer(chunk).address
    assert sum(pa.py_buffer(part).address == address for part in parts if len(part) == chunk.nbytes) == 96
    table_read = read.read(write.gather(parts, sum(map(len, parts))))
    assert [len(part) for part in table_read.column(0).chunks] == [MAX_BYTES // 16] * 3
    assert table_read.equals(table)


def test_a_published_table_of_numbers_is_one_frame_without_seams() -> None:
    table = pa.table({"n": pa.chunked_array([np.arange(1 << 17)] * 9), "x": pa.chunked_array([np.ones(1 << 17)] * 9)})
    with DataPlane(Settings(memory_budget_bytes=1 << 31)) as plane:
        url = plane.publish(table).resource_url
        got = fetch(url)
        frame = to_form(got, Form.POLARS_FRAME)
        assert isinstance(frame, pl.DataFrame)
        assert frame.n_chunks() == 1
        assert got.drop_columns("_row_id").equals(table.combine_chunks())
        assert fetch(url, [5, (1 << 17) + 5, 9 * (1 << 17) - 1])["n"].to_pylist() == [5, 5, (1 << 17) - 1]
