"""DirectChannel: the reference's surface, with errors where the reference is silent."""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from framewire import DataPlane, DirectChannel
from framewire.errors import ArgumentError, RowOutOfRangeError, UnknownColumnError, UnsupportedValueError

TABLE = pa.table(
    {
        "city": ["Zürich", "東京", None],
        "amount": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-0.01")]),
        "day": [dt.date(2013, 1, 1), None, dt.date(1, 1, 1)],
        "big": pa.array([2**63, 2**64 - 1, 0], pa.uint64()),
    }
)
ROWS = [{"_row_id": n, **row} for n, row in enumerate(TABLE.to_pylist())]


@pytest.fixture(scope="module")
def plane() -> Iterator[DataPlane]:
    with DataPlane() as running:
        yield running


@pytest.fixture(scope="module")
def url(plane: DataPlane) -> str:
    return plane.publish(TABLE).resource_url


def test_the_surface_is_the_references() -> None:
    names = {
        "fetch_data": ["resource_url", "row_ids", "columns", "column_mapping"],
        "resolve": ["abstract_data", "resource_url", "body_data", "column_mapping"],
        "remap_columns": ["rows", "column_mapping"],
    }
    for name, parameters in names.items():
        function = inspect.getattr_static(DirectChannel, name)
        assert isinstance(function, staticmethod)
        assert list(inspect.signature(function.__func__).parameters) == parameters


# --- fetch_data -------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("row_ids", "expected"), [(None, [0, 1, 2]), ([], []), ([2, 0, 2], [2, 0, 2]), (["1-"], [1, 2]), ("[1]", [1])]
)
async def test_fetch_data_gives_exact_python_values(url: str, row_ids: Any, expected: list[int]) -> None:
    assert await DirectChannel.fetch_data(url, row_ids) == [ROWS[n] for n in expected]


@pytest.mark.anyio
async def test_fetch_data_projects_and_renames(url: str) -> None:
    got = await DirectChannel.fetch_data(url, [1], ["big", "city"], {"city": "place"})
    assert [list(row.items()) for row in got] == [[("_row_id", 1), ("big", 2**64 - 1), ("place", "東京")]]


@pytest.mark.anyio
async def test_fetch_data_errors(url: str, plane: DataPlane) -> None:
    with pytest.raises(RowOutOfRangeError, match="Row 3"):
        await DirectChannel.fetch_data(url, [3])
    with pytest.raises(UnknownColumnError, match="'citty'"):
        await DirectChannel.fetch_data(url, columns=["citty"])
    with pytest.raises(UnknownColumnError, match="'citty'"):
        await DirectChannel.fetch_data(url, column_mapping={"citty": "place"})
    with pytest.raises(ArgumentError, match="would call both 'city' and 'day' 'day'"):
        await DirectChannel.fetch_data(url, column_mapping={"city": "day"})
    nanoseconds = plane.publish(pa.table({"t": pa.array([0, 1], pa.timestamp("ns"))})).resource_url
    assert (await DirectChannel.fetch_data(nanoseconds, [0]))[0]["t"] == dt.datetime(1970, 1, 1)
    with pytest.raises(UnsupportedValueError, match="Row 1 of column 't'"):
        await DirectChannel.fetch_data(nanoseconds)


# --- resolve ----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_resolve_joins_in_the_agents_order(url: str) -> None:
    abstract = '[{"_row_id": "2", "city": "wrong", "mine": 1}, {"_row_id": 0.0}]'
    got = await DirectChannel.resolve(abstract, url)
    assert got == [{**ROWS[2], "mine": 1}, {**ROWS[0], "mine": None}]
    assert list(got[0]) == [*ROWS[0], "mine"]


@pytest.mark.anyio
async def test_resolve_takes_positions_as_the_reference_does(url: str) -> None:
    got = await DirectChannel.resolve('[{"_row_id": 1, "mine": 1}]', url, "", '{"city": "place", "mine": "rank"}')
    assert got[0]["place"] == "東京"
    assert got[0]["rank"] == 1


@pytest.mark.anyio
@pytest.mark.parametrize("parsed", [False, True])
async def test_resolve_takes_an_inline_body(parsed: bool) -> None:
    body = [{"_row_id": 1, "city": "b"}, {"_row_id": 0, "city": "a"}]
    abstract = [{"_row_id": 0}, {"_row_id": 1, "mine": "x"}]
    written: Any = (abstract, body) if parsed else (json.dumps(abstract), json.dumps(body))
    got = await DirectChannel.resolve(written[0], body_data=written[1])
    assert got == [{"_row_id": 0, "city": "a", "mine": None}, {"_row_id": 1, "city": "b", "mine": "x"}]


@pytest.mark.anyio
async def test_resolve_without_a_body_is_the_agents_rows() -> None:
    abstract = '[{"_row_id": 5, "mine": 1}, {"_row_id": 2, "mine": 2}]'
    assert await DirectChannel.resolve(abstract) == [{"_row_id": 5, "mine": 1}, {"_row_id": 2, "mine": 2}]


@pytest.mark.anyio
async def test_no_rows(url: str) -> None:
    assert await DirectChannel.resolve("[]", url) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("abstract", "says"),
    [
        ('[{"_row_id": 7}]', "Row 7"),
        ('[{"_row_id": 0}, {"_row_id": 0}]', "_row_id 0 twice"),
        ('[{"city": "x"}]', "has no _row_id"),
        ('[{"_row_id": true}]', "true"),
        ("what?", "abstract_data is not JSON"),
    ],
)
async def test_resolve_errors(url: str, abstract: str, says: str) -> None:
    with pytest.raises((ArgumentError, RowOutOfRangeError), match=says):
        await DirectChannel.resolve(abstract, url)


# --- remap_columns ----------------------------------------------------------------------------------------------------


def test_remap_columns() -> None:
    rows = [{"_row_id": 0, "a": 1, "b": 2}, {"a": 3}]
    assert DirectChannel.remap_columns(rows, {"a": "b", "b": "a"}) == [{"_row_id": 0, "b": 1, "a": 2}, {"b": 3}]
    assert DirectChannel.remap_columns(rows, {}) == rows
    assert DirectChannel.remap_columns([], {"a": "b"}) == []
    assert rows == [{"_row_id": 0, "a": 1, "b": 2}, {"a": 3}]


@pytest.mark.parametrize(
    ("mapping", "error", "says"),
    [
        ({"x": "y"}, UnknownColumnError, "'x'"),
        ({"a": "b"}, ArgumentError, "would call both 'a' and 'b' 'b'"),
        ({"_row_id": "id"}, ArgumentError, "_row_id"),
        ({"a": "_row_id"}, ArgumentError, "_row_id"),
        ({"a": 1}, ArgumentError, "a number"),
    ],
)
def test_remap_columns_errors(mapping: Any, error: type[Exception], says: str) -> None:
    # The names are in different rows: what counts is the table that they make up.
    with pytest.raises(error, match=says):
        DirectChannel.remap_columns([{"_row_id": 0, "a": 1}, {"b": 2}], mapping)


def test_remap_columns_wants_dicts() -> None:
    rows: Any = [{"a": 1}, "text"]
    with pytest.raises(ArgumentError, match="Row 1 is a str"):
        DirectChannel.remap_columns(rows, {"a": "b"})
