"""Thousands of small chunks become few; large ones are left where they lie."""

from __future__ import annotations

import pyarrow as pa
import pytest

from framewire import to_table
from framewire.table import _chunks
from framewire.table._chunks import merge_small


def test_thousands_of_tiny_chunks_become_one() -> None:
    tiny = pa.concat_tables([pa.table({"a": [n], "s": [f"x{n}"]}) for n in range(2000)])
    table = to_table(tiny)
    assert table.equals(tiny)
    assert [column.num_chunks for column in table.columns] == [1, 1]


def test_large_chunks_are_not_copied() -> None:
    large = pa.array(range(_chunks.SMALL_ROWS))
    table = merge_small(pa.table({"a": pa.chunked_array([[1], [2], large, [3], large])}))
    assert [len(chunk) for chunk in table["a"].chunks] == [2, len(large), 1, len(large)]
    assert table["a"].chunk(1).buffers()[1].address == large.buffers()[1].address


def test_columns_are_cut_at_the_same_rows() -> None:
    half = _chunks.SMALL_ROWS
    table = merge_small(
        pa.table(
            {"a": pa.chunked_array([range(half), range(half)]), "b": pa.chunked_array([["x"], ["y"] * (2 * half - 1)])}
        )
    )
    assert len({tuple(len(chunk) for chunk in column.chunks) for column in table.columns}) == 1


def test_merged_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chunks, "MERGED_ROWS", 10)
    table = merge_small(pa.table({"a": pa.chunked_array([[n] for n in range(25)])}))
    assert [len(chunk) for chunk in table["a"].chunks] == [10, 10, 5]


def test_what_cannot_be_merged_stays_apart() -> None:
    # Two chunks of 127 different values each: their dictionary would not fit the 8-bit indices.
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(127), pa.int8()), pa.array([f"{start + n}" for n in range(127)]))
        for start in (0, 1000)
    ]
    table = to_table(pa.table({"d": pa.chunked_array(chunks)}))
    assert table["d"].to_pylist() == [str(n) for n in (*range(127), *range(1000, 1127))]


def test_empty_chunks_go() -> None:
    table = to_table(pa.table({"a": pa.chunked_array([[], [1], [], []], pa.int64())}))
    assert table["a"].to_pylist() == [1]
    assert to_table(pa.table({"a": pa.chunked_array([[], []], pa.int64())})).num_rows == 0


@pytest.mark.long
def test_more_than_two_gibibytes_of_text() -> None:
    text = "x" * 2**20
    half = pa.array([text] * 1100)
    for column in (half, pa.StructArray.from_arrays([half], ["a"])):
        table = to_table(pa.table({"s": pa.chunked_array([column, column])}))
        assert table.num_rows == 2200
        assert table["s"].num_chunks == 2, "merged, their offsets would overflow"
    rows = to_table([{"s": text}] * 2200)
    assert rows["s"].num_chunks == 1
    assert rows.nbytes > 2200 * 2**20
