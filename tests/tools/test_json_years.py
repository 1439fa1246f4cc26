"""Dates that Arrow holds and JSON does not: each reply that would show one is an error that names it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest
from mcp.types import CallToolResult

from framewire import DataPlane, S2SPServer, fetch

Call = Callable[..., CallToolResult]
FAR = 2_932_897
"""10000-01-01, in days since 1970."""
HINT = "Send the column as Arrow (mode='async', and not in abstract_domains), or cast it to integers or text."


def days(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32()).view(pa.date32())


TABLE = pa.table({"name": ["a", "b", "c"], "day": days(0, None, FAR)})


@pytest.fixture
def events(server: S2SPServer) -> S2SPServer:
    server.sd_resource_tool("events")(lambda: TABLE)
    server.sd_resource_tool("first", abstract_limit=2)(lambda: TABLE)
    return server


@pytest.mark.parametrize(
    "arguments", [{}, {"abstract_domains": "day"}, {"abstract_domains": "name", "mode": "sync"}], ids=str
)
def test_a_reply_that_would_show_it_is_an_error(events: S2SPServer, call: Call, arguments: dict[str, Any]) -> None:
    result = call(events, "events", **arguments)
    assert result.is_error
    assert result.content[0].model_dump()["text"] == (
        f"Column 'day', row 2: a date32[day] outside the years 1 to 9999, which has no JSON form. {HINT}"
    )
    assert events.data_plane.stats().bodies == 0


def test_a_reply_that_does_not_show_it_is_whole(events: S2SPServer, call: Call) -> None:
    hidden = call(events, "events", abstract_domains="name").structured_content
    assert hidden is not None
    assert [row["name"] for row in hidden["abstract"]] == ["a", "b", "c"]
    shown = call(events, "first", abstract_domains="day").structured_content
    assert shown is not None
    assert [row["day"] for row in shown["abstract"]] == ["1970-01-01", None]


def test_the_row_is_that_of_the_whole_table(server: S2SPServer, call: Call) -> None:
    server.sd_resource_tool("long")(lambda: pa.table({"day": days(*[None] * 24_000, FAR)}))
    result = call(server, "long")
    assert "row 24000:" in result.content[0].model_dump()["text"]


def test_a_consumer_that_returns_it(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def later(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(pl.lit(FAR).cast(pl.Date).alias("day"))

    result = call(server, "later", body_data=[{"_row_id": 0, "a": 1}])
    assert result.is_error
    assert "Column 'day', row 0" in result.content[0].model_dump()["text"]


def test_added_columns_and_inline_bodies_are_read_by_the_same_rule(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def take(rows: pl.DataFrame) -> list[str]:
        return rows["day"].cast(pl.String).to_list()

    def reply(text: str) -> CallToolResult:
        return call(server, "take", body_data={"schema": {"day": "date32[day]"}, "body": [{"_row_id": 0, "day": text}]})

    assert (reply("9999-12-31").structured_content or {})["result"] == [str(dt.date.max)]
    for text in ("0000-12-31", "+010000-01-01"):
        result = reply(text)
        assert result.is_error
        shown = result.content[0].model_dump()["text"]
        assert shown.startswith("Column 'day', row 0: text ")
        assert "years 1 to 9999 (send others as Arrow, or as integers)" in shown


def test_the_data_plane_answers_arrow_and_refuses_json() -> None:
    with DataPlane() as plane:
        url = plane.publish(TABLE).resource_url
        assert fetch(url).column("day").combine_chunks().equals(TABLE["day"].combine_chunks())
        refused = httpx.post(url, json={})
        assert (refused.status_code, refused.json()["code"]) == (406, "unsupported_value")
        assert (refused.json()["column"], refused.json()["row"]) == ("day", 2)
        assert httpx.post(url, json={"row_ids": [0, 1]}).json()["body"][0] == {
            "_row_id": 0,
            "name": "a",
            "day": "1970-01-01",
        }
