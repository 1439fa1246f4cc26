"""mcp-sd's DirectChannel, in its own process, reads from a framewire data plane."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from framewire import DataPlane
from tests.interop.peer import Peer, PeerError

pytestmark = pytest.mark.interop

TABLE = pa.table(
    {
        "city": ["Zürich", "東京", None, 'new\nline \u2028 "quoted"', "Å" * 300],
        "people": pa.array([2**53 - 1, 2**53, -(2**63), 0, None], pa.int64()),
        "ratio": [float("nan"), float("inf"), -0.0, 0.1, None],
        "amount": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-0.01")] * 2, pa.decimal128(9, 2)).slice(
            0, 5
        ),
        "day": pa.array([dt.date(2013, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)]),
        "raw": [b"\x00\xff", b"", None, b"a", b"b"],
        "places": [[{"n": 1, "tags": ["a", None]}], [], None, [None], [{"n": None, "tags": None}]],
        "kind": pa.array(["x", "y", "x", None, "y"]).dictionary_encode(),
        "flag": [True, False, None, True, False],
    }
)
ROWS: list[dict[str, Any]] = [
    {
        "city": "Zürich", "people": 2**53 - 1, "ratio": "NaN", "amount": "1.25", "day": "2013-01-01", "raw": "AP8=",
        "places": [{"n": 1, "tags": ["a", None]}], "kind": "x", "flag": True,
    },
    {
        "city": "東京", "people": str(2**53), "ratio": "Infinity", "amount": None, "day": None, "raw": "",
        "places": [], "kind": "y", "flag": False,
    },
    {
        "city": None, "people": str(-(2**63)), "ratio": -0.0, "amount": "-0.01", "day": "0001-01-01", "raw": None,
        "places": None, "kind": "x", "flag": None,
    },
    {
        "city": "new\nline \u2028 \"quoted\"", "people": 0, "ratio": 0.1, "amount": "1.25", "day": "9999-12-31",
        "raw": "YQ==", "places": [None], "kind": None, "flag": True,
    },
    {
        "city": "Å" * 300, "people": None, "ratio": None, "amount": None, "day": "1969-12-31", "raw": "Yg==",
        "places": [{"n": None, "tags": None}], "kind": "y", "flag": False,
    },
]  # fmt: skip
ALL = [{"_row_id": n, **row} for n, row in enumerate(ROWS)]
COLUMNS = TABLE.column_names

ROW_SELECTIONS: dict[str, tuple[list[Any] | None, list[int]]] = {
    "none given": (None, [0, 1, 2, 3, 4]),
    "empty, which the reference does not send": ([], [0, 1, 2, 3, 4]),
    "one": ([3], [3]),
    "scattered": ([0, 2, 4], [0, 2, 4]),
    "reversed": ([4, 3, 2, 1, 0], [4, 3, 2, 1, 0]),
    "duplicates": ([1, 1, 4, 1], [1, 1, 4, 1]),
    "ranges": (["1-3", "4-"], [1, 2, 3, 4]),
    "as text and floats": (["2", 0.0], [2, 0]),
}
COLUMN_SELECTIONS: dict[str, tuple[list[str] | None, list[str]]] = {
    "none given": (None, COLUMNS),
    "empty, which the reference does not send": ([], COLUMNS),
    "some": (["city", "ratio"], ["city", "ratio"]),
    "in another order": (["flag", "places", "city"], ["flag", "places", "city"]),
    "with the row id": (["_row_id", "raw"], ["raw"]),
}


@pytest.fixture(scope="module")
def url(plane: DataPlane) -> str:
    return plane.publish(TABLE).resource_url


@pytest.mark.parametrize("columns", COLUMN_SELECTIONS)
@pytest.mark.parametrize("rows", ROW_SELECTIONS)
def test_fetch_data(peer: Peer, url: str, rows: str, columns: str) -> None:
    row_ids, expected_rows = ROW_SELECTIONS[rows]
    names, expected_names = COLUMN_SELECTIONS[columns]
    got = peer("fetch_data", resource_url=url, row_ids=row_ids, columns=names)
    assert repr(got) == repr([{k: ALL[n][k] for k in ("_row_id", *expected_names)} for n in expected_rows])


def test_the_handle_lives_until_it_expires(peer: Peer, url: str) -> None:
    first = peer("fetch_data", resource_url=url, row_ids=[0])
    assert peer("fetch_data", resource_url=url, row_ids=[0]) == first


@pytest.mark.parametrize(
    ("selection", "status"),
    [
        ({"row_ids": [5]}, 422),
        ({"row_ids": [0, -1]}, 422),
        ({"row_ids": [1.5]}, 422),
        ({"row_ids": [True]}, 422),
        ({"row_ids": ["x"]}, 422),
        ({"columns": ["citty"]}, 422),
    ],
)
def test_what_does_not_fit_is_an_error_there(peer: Peer, url: str, selection: dict[str, Any], status: int) -> None:
    with pytest.raises(PeerError, match=rf"HTTPStatusError: .*{status}"):
        peer("fetch_data", resource_url=url, **selection)


def test_an_unknown_token_is_an_error_there(peer: Peer, plane: DataPlane) -> None:
    with pytest.raises(PeerError, match="HTTPStatusError: .*404"):
        peer("fetch_data", resource_url=f"{plane.base_url}/s2sp/data/fw1{'a' * 32}")


def test_no_rows_and_no_columns(peer: Peer, plane: DataPlane) -> None:
    empty = plane.publish(TABLE.slice(0, 0)).resource_url
    assert peer("fetch_data", resource_url=empty) == []
    assert peer("resolve", abstract_data="[]", resource_url=empty) == []


RESOLUTIONS: dict[str, list[dict[str, Any]]] = {
    "one": [{"_row_id": 2}],
    "reversed": [{"_row_id": 3, "city": ALL[3]["city"]}, {"_row_id": 0, "city": "Zürich"}],
    "with a note": [{"_row_id": 1, "note": "élan"}, {"_row_id": 4, "note": None, "rank": 2.5}],
    "all": [{"_row_id": n} for n in range(5)],
}


@pytest.mark.parametrize("name", RESOLUTIONS)
def test_resolve(peer: Peer, url: str, name: str) -> None:
    abstract = RESOLUTIONS[name]
    got = peer("resolve", abstract_data=json.dumps(abstract), resource_url=url)
    # The reference keeps what the agent says of a column; here it says nothing that the resource does not.
    assert [dict(sorted(row.items())) for row in got] == [
        dict(sorted({**ALL[row["_row_id"]], **row}.items())) for row in abstract
    ]


def test_resolve_renames(peer: Peer, url: str) -> None:
    mapping = json.dumps({"city": "place", "note": "remark"})
    got = peer("resolve", abstract_data='[{"_row_id": 0, "note": "n"}]', resource_url=url, column_mapping=mapping)
    assert got[0]["place"] == "Zürich"
    assert got[0]["remark"] == "n"
    assert "city" not in got[0]


def test_resolve_of_an_unknown_row_is_an_error_there(peer: Peer, url: str) -> None:
    with pytest.raises(PeerError, match="HTTPStatusError: .*422"):
        peer("resolve", abstract_data='[{"_row_id": 99}]', resource_url=url)
