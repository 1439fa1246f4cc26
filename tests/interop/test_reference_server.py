"""framewire reads from a real mcp-sd server: exactly, or with an error where that server would answer wrongly."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from framewire import (
    ArgumentError,
    BadBodyError,
    DirectChannel,
    InvalidTokenError,
    RowOutOfRangeError,
    S2SPError,
    SelectionError,
    TransferFailedError,
    UnknownColumnError,
    fetch,
    fetch_async,
    resolve,
    resolve_async,
)
from tests.interop.peer import Peer

pytestmark = pytest.mark.interop

ROWS: list[dict[str, Any]] = [
    {"city": "Zürich", "people": 2**53 + 1, "ratio": 0.1, "places": [{"n": 1, "tags": ["a"]}], "note": None},
    {"city": "東京", "people": -(2**63), "ratio": -0.0, "places": [], "note": "é"},
    {"city": None, "people": 0, "ratio": 1e300, "places": None, "note": None},
    {"city": 'new\nline \u2028 "quoted"', "people": 1, "ratio": 5e-324, "places": [{"n": 2, "tags": []}], "note": ""},
    {"city": "Å" * 300, "people": 2**63 - 1, "ratio": None, "places": [{"n": None, "tags": ["b", "c"]}], "note": "x"},
]
ALL = [{"_row_id": n, **row} for n, row in enumerate(ROWS)]
COLUMNS = list(ROWS[0])

ROW_SELECTIONS: dict[str, tuple[Any, list[int]]] = {
    "none given": (None, [0, 1, 2, 3, 4]),
    "empty": ([], []),
    "one": ([3], [3]),
    "scattered": ([0, 2, 4], [0, 2, 4]),
    "reversed": ([4, 3, 2, 1, 0], [4, 3, 2, 1, 0]),
    "duplicates": ([1, 1, 4, 1], [1, 1, 4, 1]),
    "range": (["1-3"], [1, 2, 3]),
    "open range": (["3-"], [3, 4]),
    "open range, then one again": (["3-", 3], [3, 4, 3]),
    "as text": ("[4, 0]", [4, 0]),
    "all": (["0-4"], [0, 1, 2, 3, 4]),
}
COLUMN_SELECTIONS: dict[str, tuple[list[str] | None, list[str]]] = {
    "none given": (None, COLUMNS),
    "some": (["city", "ratio"], ["city", "ratio"]),
    "in another order": (["note", "places", "city"], ["note", "places", "city"]),
    "with the row id": (["_row_id", "people"], ["people"]),
    "only the row id": (["_row_id"], []),
}


@pytest.mark.parametrize("columns", COLUMN_SELECTIONS)
@pytest.mark.parametrize("rows", ROW_SELECTIONS)
def test_fetch(peer: Peer, rows: str, columns: str) -> None:
    row_ids, expected_rows = ROW_SELECTIONS[rows]
    names, expected_names = COLUMN_SELECTIONS[columns]
    table = fetch(peer.publish(ROWS), row_ids, names)
    assert repr(table.to_pylist()) == repr(
        [{k: ALL[n][k] for k in ("_row_id", *expected_names)} for n in expected_rows]
    )


@pytest.mark.anyio
@pytest.mark.parametrize("rows", ROW_SELECTIONS)
async def test_the_async_pair(peer: Peer, rows: str) -> None:
    row_ids, expected_rows = ROW_SELECTIONS[rows]
    table = await fetch_async(peer.publish(ROWS), row_ids, ["people"])
    assert table.to_pylist() == [{"_row_id": n, "people": ROWS[n]["people"]} for n in expected_rows]
    got = await DirectChannel.fetch_data(peer.publish(ROWS), row_ids, ["people"])
    assert got == table.to_pylist()


@pytest.mark.parametrize(
    ("selection", "error", "named"),
    [
        ({"row_ids": [0, 5]}, RowOutOfRangeError, "Row 5"),
        ({"row_ids": ["3-7"]}, RowOutOfRangeError, "Row 5"),
        ({"row_ids": [99]}, RowOutOfRangeError, "Row 99"),
        ({"row_ids": [-1]}, SelectionError, "-1"),
        ({"row_ids": [1.5]}, SelectionError, "1.5"),
        ({"row_ids": [True]}, SelectionError, "true"),
        ({"columns": ["citty"]}, UnknownColumnError, "'citty'"),
        ({"columns": ["city", "nope"], "row_ids": [1]}, UnknownColumnError, "'nope'"),
    ],
)
def test_what_that_server_would_pass_over(peer: Peer, selection: Any, error: type[S2SPError], named: str) -> None:
    with pytest.raises(error, match=named):
        fetch(peer.publish(ROWS), **selection)


def test_a_url_works_once_and_says_so(peer: Peer) -> None:
    url = peer.publish(ROWS)
    assert fetch(url).num_rows == 5
    with pytest.raises(InvalidTokenError) as caught:
        fetch(url)
    assert "resource tool again" in str(caught.value)
    assert url.rpartition("/")[2] not in str(caught.value)


def test_asking_for_nothing_does_not_spend_it(peer: Peer) -> None:
    url = peer.publish(ROWS)
    assert fetch(url, []).num_rows == 0
    assert resolve("[]", url).shape == (0, 1)
    assert fetch(url).num_rows == 5


def test_numbers_that_json_cannot_say_break_that_server_visibly(peer: Peer) -> None:
    url = peer.publish([{"city": "x", "ratio": float("nan")}])
    with pytest.raises(TransferFailedError, match="500"):
        fetch(url)


def test_late_keys_are_kept(peer: Peer) -> None:
    rows: list[dict[str, Any]] = [{"city": "a"}, {"city": "b", "late": 1}, {"late": 2}]
    table = fetch(peer.publish(rows))
    assert table.to_pylist() == [
        {"_row_id": 0, "city": "a", "late": None},
        {"_row_id": 1, "city": "b", "late": 1},
        {"_row_id": 2, "city": None, "late": 2},
    ]


def test_no_rows(peer: Peer) -> None:
    assert fetch(peer.publish([])).num_rows == 0


def test_values_of_no_one_type_are_refused_by_name(peer: Peer) -> None:
    with pytest.raises(BadBodyError, match="mix"):
        fetch(peer.publish([{"city": "a", "mix": 1}, {"city": "b", "mix": "text"}]))


def test_many_rows(peer: Peer) -> None:
    rows = [{"city": f"é{n}", "n": n, "half": n / 2} for n in range(20_000)]
    frame = resolve(resource_url=peer.publish(rows), row_ids=["19990-", "0-3", 7])
    assert frame["n"].to_list() == [*range(19_990, 20_000), 0, 1, 2, 3, 7]
    assert frame.schema == {"_row_id": pl.Int64, "city": pl.String, "n": pl.Int64, "half": pl.Float64}


# --- resolve ----------------------------------------------------------------------------------------------------------


def abstract_of(reply: dict[str, Any], ids: list[int], **added: Any) -> str:
    """What an agent passes on: rows of the reply, in its own order, with columns of its own."""
    shown = {row["_row_id"]: row for row in reply["abstract"]}
    return json.dumps([{**shown[i], **added} for i in ids])


@pytest.mark.parametrize("ids", [[2], [4, 0], [0, 1, 2, 3, 4], [3, 1, 4, 0, 2]])
def test_resolve(peer: Peer, ids: list[int]) -> None:
    reply = peer("publish", rows=ROWS, abstract_domains="city,note")
    frame = resolve(abstract_of(reply, ids, mine="yes"), reply["resource_url"])
    assert repr(frame.to_dicts()) == repr([{**ALL[i], "mine": "yes"} for i in ids])


def test_the_resource_wins_over_the_agent(peer: Peer) -> None:
    frame = resolve('[{"_row_id": 0, "people": 9007199254740992, "city": "Zurich"}]', peer.publish(ROWS))
    assert frame["people"].to_list() == [2**53 + 1]
    assert frame["city"].to_list() == ["Zürich"]


def test_row_ids_select_and_the_agent_adds(peer: Peer) -> None:
    frame = resolve('[{"_row_id": 4, "mine": 1}]', peer.publish(ROWS), row_ids=[1, 4, 1])
    assert frame["mine"].to_list() == [None, 1, None]
    assert frame["_row_id"].to_list() == [1, 4, 1]


def test_unknown_ids_of_the_agent_are_errors(peer: Peer) -> None:
    with pytest.raises(RowOutOfRangeError, match="Row 77"):
        resolve('[{"_row_id": 0}, {"_row_id": 77}]', peer.publish(ROWS))
    with pytest.raises(ArgumentError, match="_row_id 2"):
        resolve('[{"_row_id": 2}]', peer.publish(ROWS), row_ids=[0, 1])


def test_renaming_both_sides(peer: Peer) -> None:
    mapping = '{"city": "place", "note": "city", "mine": "rank"}'
    frame = resolve('[{"_row_id": 1, "mine": 3}]', peer.publish(ROWS), column_mapping=mapping)
    assert frame.columns == ["_row_id", "place", "people", "ratio", "places", "city", "rank"]
    with pytest.raises(ArgumentError, match=r"'city'.*'note'"):
        resolve('[{"_row_id": 1}]', peer.publish(ROWS), column_mapping='{"city": "note"}')


@pytest.mark.anyio
async def test_direct_channel_resolves_as_the_reference_does(peer: Peer) -> None:
    abstract = [{"_row_id": 3, "mine": "a"}, {"_row_id": 1, "mine": "b"}]
    ours = await DirectChannel.resolve(json.dumps(abstract), peer.publish(ROWS))
    theirs = peer("resolve", abstract_data=json.dumps(abstract), resource_url=peer.publish(ROWS))
    assert ours == theirs
    assert (await resolve_async(json.dumps(abstract), peer.publish(ROWS))).to_dicts() == ours


@pytest.mark.parametrize("ids", [[0, 1, 2, 3, 4], [4, 0]])
def test_sync_mode(peer: Peer, ids: list[int]) -> None:
    reply = peer("publish", rows=ROWS, abstract_domains="city,note", mode="sync")
    frame = resolve(abstract_of(reply, ids), body_data=json.dumps(reply["body"]))
    assert [dict(sorted(row.items())) for row in frame.to_dicts()] == [dict(sorted(ALL[i].items())) for i in ids]
    whole = resolve(abstract_of(reply, ids), body_data=json.dumps(reply))
    assert whole.select(frame.columns).equals(frame)
