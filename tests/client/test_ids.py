from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from framewire.client._plan import _check_ids
from framewire.errors import BadBodyError
from framewire.selection import RowSpec, parse_row_ids

ROWS = 100_000
CUTS = [[0, ROWS], [0, 40_000, ROWS], [0, 0, 1, ROWS]]


def _table(ids: npt.NDArray[np.int64], cuts: list[int]) -> pa.Table:
    parts = [ids[a:b] for a, b in pairwise(cuts)]
    return pa.table({"_row_id": pa.chunked_array([pa.array(part, pa.int64()) for part in parts], pa.int64())})


@pytest.mark.parametrize("cuts", CUTS)
def test_ids_in_any_chunks_are_taken(cuts: list[int]) -> None:
    ids = np.arange(ROWS)
    ranged = parse_row_ids([f"7-{ROWS + 6}"])
    assert _is_taken(_table(ids, cuts), None)
    assert _is_taken(_table(ids + 7, cuts), ranged)
    assert not _is_taken(_table(ids + 7, cuts), None)
    assert not _is_taken(_table(ids, cuts), ranged)


def _is_taken(table: pa.Table, rows: RowSpec | None) -> bool:
    try:
        _check_ids(table, rows)
    except BadBodyError:
        return False
    return True


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("place", [0, 39_999, 40_000, ROWS - 1])
def test_one_other_id_is_noticed_wherever_it_is(cuts: list[int], place: int) -> None:
    ids = np.arange(ROWS)
    ids[place] += 1
    for rows in (None, parse_row_ids([f"0-{ROWS - 1}"])):
        with pytest.raises(BadBodyError, match="other rows"):
            _check_ids(_table(ids, cuts), rows)


@pytest.mark.parametrize("cuts", CUTS)
def test_of_a_trusted_peers_whole_body_both_ends_are_checked(cuts: list[int]) -> None:
    ids = np.arange(ROWS)
    _check_ids(_table(ids, cuts), None, trusted=True)
    _check_ids(_table(ids[:0], [0, 0]), None, trusted=True)
    for shifted in (ids + 1, ids - 1, np.append(ids[:-1], ROWS)):
        with pytest.raises(BadBodyError, match="other rows"):
            _check_ids(_table(shifted, cuts), None, trusted=True)


def test_of_a_trusted_peers_selection_every_id_is_checked() -> None:
    ids = np.arange(ROWS)
    ids[1] = 5
    with pytest.raises(BadBodyError, match="other rows"):
        _check_ids(_table(ids, CUTS[0]), parse_row_ids([f"0-{ROWS - 1}"]), trusted=True)
