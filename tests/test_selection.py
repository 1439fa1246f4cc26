from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.errors import RowOutOfRangeError, SelectionError, UnknownKeyError
from framewire.selection import parse_row_ids, parse_selection, resolve_rows


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ([], []),
        ([0, 2, 1, 1], [0, 2, 1, 1]),
        (["3", 3.0, np.int32(4), " 5 "], [3, 3, 4, 5]),
        (["5-7", 2], [5, 6, 7, 2]),
        ("[0, 2]", [0, 2]),
        ("0,2, 5-6", [0, 2, 5, 6]),
        ("", []),
        (7, [7]),
        (pa.array([3, 1], pa.uint8()), [3, 1]),
        (pa.chunked_array([[3], [1]]), [3, 1]),
    ],
)
def test_accepted_forms(written: Any, ids: list[int]) -> None:
    assert parse_row_ids(written).expand().tolist() == ids


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ([-1], "-1"),
        ([1.5], "1.5"),
        ([True], "true"),
        ([0, False], "false"),
        (["1.0"], "'1.0'"),
        (["-3"], "'-3'"),
        ([None], "None"),
        ([float("nan")], "nan"),
        ([float("inf")], "inf"),
        ([2**70], "1180591620717411303424"),
        (["٣"], "'٣'"),
        (["9" * 30], "'99999"),
        (["7-5"], "'7-5'"),
        ([[1]], "[1]"),
        ("[0, 2", "not valid JSON"),
        ({"a": 1}, "dict"),
        (pa.array([1.0]), "double"),
        (pa.array([1, None]), "nulls"),
        (pa.array([2**63], pa.uint64()), "int64"),
    ],
)
def test_refused_by_name(written: Any, named: str) -> None:
    with pytest.raises(SelectionError, match="Row ids are whole numbers") as caught:
        parse_row_ids(written)
    assert named in caught.value.message


def test_to_wire_joins_neighbours_and_keeps_order_and_duplicates() -> None:
    spec = parse_row_ids([0, 1, 2, 9, 9, 8, "5-6", "7-", 0])
    assert spec.to_wire() == ["0-2", 9, 9, 8, "5-", 0]
    assert parse_row_ids([4, 2, 0]).to_wire() == [4, 2, 0]


def test_open_ranges_end_with_the_table() -> None:
    assert resolve_rows(parse_row_ids("7-,0"), 10).indices().to_pylist() == [7, 8, 9, 0]
    assert resolve_rows(parse_row_ids("10-"), 10).count == 0
    assert resolve_rows(parse_row_ids("0-"), 0).count == 0
    assert resolve_rows(parse_row_ids("0-"), 10).is_all
    assert resolve_rows(parse_row_ids("0-4,5-9"), 10).is_all
    assert resolve_rows(parse_row_ids([3, 4, "5-6"]), 10).contiguous == (3, 7)


@pytest.mark.parametrize(("written", "row"), [("10", 10), ("3-10", 10), ("11-", 11), ("0,99,5", 99)])
def test_rows_beyond_the_table_are_named(written: str, row: int) -> None:
    with pytest.raises(RowOutOfRangeError, match=rf"Row {row} does not exist. Rows 0 to 9 exist."):
        resolve_rows(parse_row_ids(written), 10)


def test_a_selection_of_many_long_ranges_is_counted_not_expanded() -> None:
    spec = parse_row_ids(["0-999999999999999999"] * 1000)
    assert (spec.count() or 0) > 2**62


def test_requests() -> None:
    assert parse_selection({}).is_whole
    chosen = parse_selection({"row_ids": [1], "columns": ["a", "_row_id"]})
    assert chosen.columns == ("a",)
    assert chosen.rows is not None
    assert chosen.rows.expand().tolist() == [1]
    for request, error, text in [
        ({"rows": [1]}, UnknownKeyError, "'rows'"),
        ([1], SelectionError, "not a JSON object"),
        ({"columns": "a"}, SelectionError, "list of names"),
        ({"columns": ["a", "a"]}, SelectionError, "'a' twice"),
        ({"where": "a > 1"}, SelectionError, "where"),
    ]:
        with pytest.raises(error, match=text):
            parse_selection(request)


ids = st.integers(0, 30)
items = st.lists(
    ids
    | st.tuples(ids, ids).map(lambda p: f"{min(p)}-{max(p)}")
    | ids.map(lambda i: f"{i}-")
    | ids.map(float)
    | ids.map(str),
    max_size=12,
)


def naive(written: list[Any], total: int) -> list[int] | None:
    """The rule of the wire on Python lists; None where a row is out of range."""
    out: list[int] = []
    for item in written:
        head, dash, tail = str(item).partition("-") if isinstance(item, str) else (str(int(item)), "", "")
        start, stop = int(head), (int(tail) + 1 if tail else total) if dash else int(head) + 1
        if start > total or (start == total and not (dash and not tail)) or stop > total:
            return None
        out += range(start, stop)
    return out


@given(items, st.integers(0, 31))
def test_selection_equals_the_naive_model(written: list[Any], total: int) -> None:
    expected = naive(written, total)
    spec = parse_row_ids(written)
    if expected is None:
        with pytest.raises(RowOutOfRangeError):
            resolve_rows(spec, total)
        return
    rows = resolve_rows(spec, total)
    assert rows.indices().to_pylist() == expected
    assert rows.count == len(expected)
    assert resolve_rows(parse_row_ids(spec.to_wire()), total).indices().to_pylist() == expected
    if not spec.is_open:
        assert spec.count() == len(expected)
        parts = spec.split(3)
        assert [i for part in parts for i in part.expand().tolist()] == expected
        assert all(0 < (part.count() or 0) <= 3 for part in parts)
