"""What selects, what orders, what wins and what is kept; without and with a resource server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest

from framewire.arrow import write
from framewire.consume import resolve
from framewire.errors import ArgumentError, RowOutOfRangeError, SelectionError, UnknownColumnError
from framewire.plane import DataPlane
from framewire.table import to_table
from framewire.tools._reply import Request, reply

FRAME = pl.DataFrame(
    {"id": [2**62 + i for i in range(6)], "price": [1.5, None, 3.0, 4.0, 5.0, 6.0], "tag": list("abcdef")}
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with DataPlane() as plane:
        yield plane.publish(FRAME).resource_url


def _ids(frame: pl.DataFrame) -> list[int]:
    return frame["_row_id"].to_list()


def test_the_agents_rows_select_and_order(url: str) -> None:
    frame = resolve('[{"_row_id": 4}, {"_row_id": 1}]', url)
    assert _ids(frame) == [4, 1]
    assert frame.columns == ["_row_id", "id", "price", "tag"]


def test_row_ids_select_and_the_agent_only_adds(url: str) -> None:
    abstract = json.dumps([{"_row_id": 3, "note": "x"}, {"_row_id": "1", "note": "y"}])
    frame = resolve(abstract, url, row_ids=[1, 3, 1, 0])
    assert _ids(frame) == [1, 3, 1, 0]
    assert frame["note"].to_list() == ["y", "x", "y", None]
    with pytest.raises(ArgumentError, match="5"):
        resolve('[{"_row_id": 5, "note": "x"}]', url, row_ids=[1])


def test_neither_is_every_row_and_an_empty_array_is_none(url: str) -> None:
    assert resolve(resource_url=url).height == 6
    assert resolve(resource_url=url, row_ids="").height == 6
    for nothing in (resolve("[]", url), resolve(resource_url=url, row_ids=[]), resolve(resource_url=url, row_ids="[]")):
        assert nothing.height == 0
        assert nothing.drop("_row_id").schema == FRAME.schema
    assert resolve("[]", url, row_ids=[2]).height == 1


def test_the_resources_values_win_and_keep_their_types(url: str) -> None:
    frame = resolve('[{"_row_id": 0, "id": 4611686018427388000, "price": "cheap", "rank": 1}]', url)
    assert frame.to_dicts() == [{"_row_id": 0, "id": 2**62, "price": 1.5, "tag": "a", "rank": 1}]
    assert frame.schema["id"] == pl.Int64


def test_column_mapping_renames_both_sides(url: str) -> None:
    frame = resolve(
        '[{"_row_id": 0, "note": "n"}]',
        url,
        column_mapping='{"tag": "label", "note": "why", "id": "price", "price": "id"}',
    )
    assert frame.to_dicts() == [{"_row_id": 0, "price": 2**62, "id": 1.5, "label": "a", "why": "n"}]
    with pytest.raises(UnknownColumnError, match="'tagg'"):
        resolve(resource_url=url, column_mapping={"tagg": "x"})
    with pytest.raises(ArgumentError):
        resolve(resource_url=url, column_mapping={"tag": "price"})


@pytest.mark.parametrize(
    ("abstract", "error"),
    [
        ("not json", ArgumentError),
        ('{"_row_id": 1}', ArgumentError),
        ("[1]", ArgumentError),
        ('[{"id": 1}]', ArgumentError),
        ('[{"_row_id": -1}]', ArgumentError),
        ('[{"_row_id": 1.5}]', ArgumentError),
        ('[{"_row_id": true}]', ArgumentError),
        ('[{"_row_id": 1}, {"_row_id": 1}]', ArgumentError),
        ('[{"_row_id": 6}]', RowOutOfRangeError),
    ],
)
def test_a_bad_abstract_is_an_error_never_a_shorter_frame(url: str, abstract: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        resolve(abstract, url)


def test_bad_row_ids(url: str) -> None:
    for row_ids in ([-1], [1.5], [True], "x"):
        with pytest.raises(SelectionError, match="is not a row id"):
            resolve(resource_url=url, row_ids=row_ids)


BODY = [{"_row_id": i, "price": FRAME["price"][i]} for i in range(6)]


def _data_url(table: pa.Table) -> str:
    return (
        "data:application/vnd.apache.arrow.stream;base64,"
        + base64.b64encode(b"".join(write.encode(table).parts)).decode()
    )


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(BODY),
        BODY,
        json.dumps({"schema": {"_row_id": "int64", "id": "int64", "price": "double"}, "body": BODY, "total_rows": 6}),
        _data_url(pa.table({"_row_id": pa.array(range(6), pa.int64()), "price": FRAME["price"].to_arrow()})),
    ],
)
def test_sync_mode(body: Any) -> None:
    frame = resolve('[{"_row_id": 5, "tag": "f"}, {"_row_id": 1, "tag": "b"}]', body_data=body)
    assert frame.to_dicts() == [{"_row_id": 5, "price": 6.0, "tag": "f"}, {"_row_id": 1, "price": None, "tag": "b"}]
    assert resolve(body_data=body, row_ids=["4-", 4])["price"].to_list() == [5.0, 6.0, 5.0]
    with pytest.raises(RowOutOfRangeError, match="Row 9"):
        resolve('[{"_row_id": 9}]', body_data=body)


def test_in_sync_mode_the_agents_values_take_the_declared_types() -> None:
    reply = {
        "schema": {"id": "int64", "price": "float", "day": "date32[day]"},
        "body": [{"_row_id": 0, "price": 1.5}],
    }
    frame = resolve('[{"_row_id": 0, "id": "4611686018427387905", "day": "2013-01-31"}]', body_data=json.dumps(reply))
    assert dict(frame.schema) == {"_row_id": pl.Int64, "price": pl.Float32, "id": pl.Int64, "day": pl.Date}
    assert frame["id"].to_list() == [4611686018427387905]


@pytest.mark.parametrize(
    "body",
    [
        "no json",
        "{}",
        "[1]",
        '[{"x": 1}]',
        '[{"_row_id": 0}, {"_row_id": 0}]',
        '[{"_row_id": -1}]',
        "data:text/plain,x",
        "data:application/vnd.apache.arrow.stream;base64,!!",
    ],
)
def test_a_bad_body_is_an_argument_error(body: str) -> None:
    with pytest.raises(ArgumentError):
        resolve(body_data=body)


def test_without_a_body_the_agents_rows_are_all_there_is() -> None:
    assert resolve('[{"_row_id": 3, "a": 1}, {"_row_id": 0, "a": 2}]').to_dicts() == [
        {"_row_id": 3, "a": 1},
        {"_row_id": 0, "a": 2},
    ]
    with pytest.raises(ArgumentError, match="Both resource_url and body_data"):
        resolve(resource_url="http://127.0.0.1:1/s2sp/data/x", body_data="[]")


# --- whole sync replies -----------------------------------------------------------------------------------------------


def _sync_reply(rows: int, limit: int, domains: str = "a,day") -> dict[str, Any]:
    frame = pl.DataFrame(
        {"a": range(rows), "day": [f"d{i}" for i in range(rows)], "price": [i / 4 for i in range(rows)]}
    )
    result = reply(
        to_table(frame), Request.read(domains, "sync", limit), lambda prepared: pytest.fail("no handle is made")
    )
    content: dict[str, Any] = result.structured_content or {}
    return content


@pytest.mark.parametrize("domains", ["a,day", "day", "a,day,price", "_row_id"])
@pytest.mark.parametrize(("rows", "limit"), [(3, 100), (150, 100), (150, 0), (0, 100)])
def test_a_whole_sync_reply_is_the_whole_table(domains: str, rows: int, limit: int) -> None:
    """Abstract and body hold every value between them, also where the abstract is cut."""
    frame = resolve(body_data=json.loads(json.dumps(_sync_reply(rows, limit, domains))))
    if rows:
        assert frame.columns == ["_row_id", "a", "day", "price"]
        assert frame["a"].to_list() == list(range(rows))
        assert frame["day"].to_list() == [f"d{i}" for i in range(rows)]
    assert frame.height == rows


def test_the_values_of_a_whole_sync_reply_win() -> None:
    whole = _sync_reply(3, 100)
    frame = resolve([{"_row_id": 1, "day": "altered", "price": 99.0, "note": "x"}], body_data=whole)
    assert frame.to_dicts() == [{"_row_id": 1, "a": 1, "day": "d1", "price": 0.25, "note": "x"}]


def test_a_reply_that_cannot_be_completed_is_refused() -> None:
    cut = _sync_reply(3, 100)
    cut["abstract"] = cut["abstract"][:2]
    with pytest.raises(ArgumentError, match="does not show every row.*mode='async'"):
        resolve(body_data=cut)
    with pytest.raises(ArgumentError, match="async reply.*resource_url"):
        resolve(body_data={"abstract": [], "resource_url": "http://127.0.0.1:1/s2sp/data/x"})
    with pytest.raises(ArgumentError, match="whole reply"):
        resolve(body_data=[{"a": 1}])


# --- arguments of another type ----------------------------------------------------------------------------------------


def test_policies_and_transports_of_another_type_are_named(url: str) -> None:
    wrong: Any = httpx.Client()
    with wrong, pytest.raises(ArgumentError, match="transport is of type Client.*HTTPTransport"):
        resolve(resource_url=url, transport=wrong)
    with pytest.raises(ArgumentError, match="blocking call.*fetch_async"):
        resolve(resource_url=url, transport=httpx.AsyncHTTPTransport())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="policy is of type str"):
        resolve(resource_url=url, policy="http://a.example")  # type: ignore[arg-type]
