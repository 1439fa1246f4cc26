"""Nested types and arrays taken apart and put together again, and the values that their rows show."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from framewire.arrow import nested, types
from framewire.arrow.items import Spans, visible_leaves
from framewire.arrow.ranges import OutOfRange, out_of_range
from framewire.arrow.search import first_failing
from framewire.testing import check_tables, exact_values

RUN_ENDS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None]))
UUIDS = pa.array([b"a" * 16, None, b"b" * 16], pa.uuid())


def test_every_nested_array_is_put_together_again() -> None:
    def check(table: pa.Table) -> None:
        for column in (*table.columns, *table[1:].columns):
            assert types.map_type(lambda leaf: leaf, column.type).equals(column.type, check_metadata=True)
            for chunk in column.chunks:
                parts = nested.children(chunk)
                assert [part.type for part in parts] == [field.type for field in types.children(chunk.type)]
                if parts:
                    same = nested.with_children(chunk, parts, chunk.type)
                    same.validate(full=True)
                    assert exact_values(pa.chunked_array([same])) == exact_values(pa.chunked_array([chunk]))

    check_tables(check)


@pytest.mark.parametrize("array", [RUN_ENDS, RUN_ENDS[1:], UUIDS, UUIDS[1:]], ids=str)
def test_run_ends_and_extension_arrays_too(array: pa.Array) -> None:
    assert nested.with_children(array, nested.children(array), array.type).equals(array)


def test_a_storage_takes_the_place_of_its_extension_type() -> None:
    assert types.map_type(lambda leaf: leaf, pa.list_(pa.uuid())) == pa.list_(pa.binary(16))
    assert nested.with_children(UUIDS, [UUIDS.storage], pa.binary(16)) is not UUIDS


@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_first_failing_row(length: int) -> None:
    for first in range(length):
        failing = set(range(first, length, 2))
        assert first_failing(length, partial(_fails, failing)) == first


def _fails(failing: set[int], start: int, stop: int) -> bool:
    return not failing.isdisjoint(range(start, stop))


ITEMS = pa.array([10, 11, 12, 13])
LISTS = {
    "hidden items": pa.ListArray.from_arrays([0, 1, 3, 4], ITEMS, mask=pa.array([False, True, False])),
    "no items, at the end": pa.ListViewArray.from_arrays(
        pa.array([4, 3], pa.int32()), pa.array([0, 0], pa.int32()), ITEMS
    ),
    "views in any order": pa.ListViewArray.from_arrays([2, 0], [2, 3], ITEMS),
    "fixed size": pa.FixedSizeListArray.from_arrays(ITEMS, 2, mask=pa.array([True, False])),
    "no lists": pa.array([], pa.list_(pa.int64())),
}


@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
def test_items_are_those_that_lists_show(lists: pa.Array) -> None:
    for part in (lists, lists[1:], lists[:1], lists[1:1]):
        spans = Spans(part)
        shown: list[Any] = [item for row in part.to_pylist() if row is not None for item in row]
        assert spans.gather(part.values).to_pylist() == shown
        assert list(spans.offsets)[-1] == len(shown)


def _range(dtype: pa.DataType) -> tuple[int, int] | None:
    return (0, 9) if dtype == pa.int64() else None


@pytest.mark.parametrize(
    ("array", "path"),
    [
        (pa.array([1, None, 10]), ""),
        (pa.array([{"a": "x", "b": 1}, None, {"a": None, "b": 10}]), ".b"),
        (pa.array([[1, 2], None, [3, 10]]), "[]"),
        (pa.array([[("k", 1)], None, [("l", 10)]], pa.map_(pa.string(), pa.int64())), "[].value"),
        (pa.array([1, None, 10]).dictionary_encode(), ""),
        (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([1, 10])), ""),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_the_first_value_out_of_range(array: pa.Array, path: str) -> None:
    good = array[:2]
    assert out_of_range(pa.chunked_array([good, good]), _range) is None
    assert out_of_range(pa.chunked_array([good, array, array]), _range) == OutOfRange(4, path, pa.int64())


def test_values_that_no_row_shows_do_not_count() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([10, 1]))
    hidden = pa.StructArray.from_arrays([pa.array([10, 1]), runs], ["a", "b"], mask=pa.array([True, False]))
    for array in (hidden, pa.array([10, 1])[1:], LISTS["hidden items"][:0]):
        assert out_of_range(pa.chunked_array([array]), _range) is None
    leaves = [(leaf.to_pylist(), path) for leaf, path in visible_leaves(hidden, pa.types.is_integer)]
    assert leaves == [([None, 1], ".a"), ([None, 1], ".b")]
