"""Consumer tools: what the function receives, and what becomes of what it returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mcp.server.mcpserver import Image
from mcp.types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel
from typing_extensions import TypedDict

from framewire import DataPlane, S2SPServer

Call = Callable[..., CallToolResult]
TABLE = pa.table({"carrier": ["UA", "AA", "B6", "DL"], "delay": [11.5, -2.0, None, 30.25], "id": [2**60, 1, 2, 3]})
BODY = [{"_row_id": 0, "a": 1}, {"_row_id": 1, "a": 2}]


def text_of(result: CallToolResult) -> str:
    assert len(result.content) == 1
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


@pytest.fixture
def url() -> Any:
    with DataPlane() as plane:
        yield plane.publish(TABLE).resource_url


@pytest.fixture
def seen(server: S2SPServer) -> list[list[dict[str, Any]]]:
    """The rows that each call of the tool ``take`` received."""
    received: list[list[dict[str, Any]]] = []

    @server.sd_consumer_tool
    def take(rows: pl.DataFrame, top: int = 5) -> str:
        received.append(rows.to_dicts())
        return f"{rows.height} rows, top {top}"

    return received


def test_selection_and_order(server: S2SPServer, call: Call, url: str, seen: list[Any]) -> None:
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [0, 1, 2, 3]),
        ({"abstract_data": '[{"_row_id": 2}, {"_row_id": 0}]'}, [2, 0]),
        ({"abstract_data": "[]"}, []),
        ({"row_ids": "3,0-1"}, [3, 0, 1]),
        ({"row_ids": [1, 1], "abstract_data": [{"_row_id": 1, "note": "x"}]}, [1, 1]),
    ]
    for arguments, expected in cases:
        result = call(server, "take", resource_url=url, top=3, **arguments)
        assert text_of(result) == f"{len(expected)} rows, top 3", arguments
        assert [row["_row_id"] for row in seen[-1]] == expected
    assert [row["note"] for row in seen[-1]] == ["x", "x"]


def test_values_are_the_resources_and_added_columns_the_agents(
    server: S2SPServer, call: Call, url: str, seen: list[Any]
) -> None:
    agent = [{"_row_id": 0, "id": 5, "carrier": "wrong", "rank": 1}]
    call(server, "take", resource_url=url, abstract_data=agent, column_mapping={"delay": "late"})
    assert seen == [[{"_row_id": 0, "carrier": "UA", "late": 11.5, "id": 2**60, "rank": 1}]]


def test_a_sync_reply_passed_on(server: S2SPServer, call: Call, seen: list[Any]) -> None:
    @server.sd_resource_tool
    def flights() -> Any:
        return TABLE

    reply = call(server, "flights", abstract_domains="carrier", mode="sync").structured_content
    assert reply is not None
    chosen = [row for row in reply["abstract"] if row["carrier"] != "AA"]
    for whole in (reply, json.dumps(reply)):
        result = call(server, "take", abstract_data=chosen, body_data=whole)
        assert not result.is_error, text_of(result)
        assert [(row["_row_id"], row["carrier"], row["delay"], row["id"]) for row in seen[-1]] == [
            (0, "UA", 11.5, 2**60),
            (2, "B6", None, 2),
            (3, "DL", 30.25, 3),
        ]
    # The body alone carries no types: "id" is text and numbers in JSON, so the reply is asked for instead of a guess.
    assert call(server, "take", abstract_data=chosen, body_data=reply["body"]).is_error
    call(server, "take", body_data=[{"_row_id": 0, "n": 1}])
    assert seen[-1] == [{"_row_id": 0, "n": 1}]


def test_each_form(server: S2SPServer, call: Call, url: str) -> None:
    got: list[Any] = []

    @server.sd_consumer_tool
    def polars(rows: pl.DataFrame) -> str:
        got.append(rows)
        return ""

    @server.sd_consumer_tool
    async def lazy(rows: pl.LazyFrame) -> str:
        got.append(rows)
        return ""

    @server.sd_consumer_tool
    def arrow(rows: pa.Table) -> str:
        got.append(rows)
        return ""

    @server.sd_consumer_tool
    def reader(rows: pa.RecordBatchReader) -> str:
        got.append(rows)
        return ""

    @server.sd_consumer_tool
    def pandas(rows: pd.DataFrame) -> str:
        got.append(rows)
        return ""

    @server.sd_consumer_tool
    async def dicts(rows: list[dict]) -> str:  # type: ignore[type-arg]
        got.append(rows)
        return ""

    @server.sd_consumer_tool
    def untyped(data):  # type: ignore[no-untyped-def]
        got.append(data)
        return ""

    for name in ("polars", "lazy", "arrow", "reader", "pandas", "dicts", "untyped"):
        assert not call(server, name, resource_url=url).is_error, name
    kinds = [pl.DataFrame, pl.LazyFrame, pa.Table, pa.RecordBatchReader, pd.DataFrame, list, pl.DataFrame]
    assert [type(value) for value in got] == kinds


def test_errors_are_tool_errors_that_say_what_to_do(server: S2SPServer, call: Call, url: str, seen: list[Any]) -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"resource_url": url, "abstract_data": "not json"},
        {"resource_url": url, "abstract_data": [{"delay": 1}]},
        {"resource_url": url, "abstract_data": [{"_row_id": 9}]},
        {"resource_url": url, "abstract_data": [{"_row_id": 1}, {"_row_id": 1}]},
        {"resource_url": url, "row_ids": "0-99"},
        {"resource_url": url, "column_mapping": {"nothing": "x"}},
        {"resource_url": url[:-3] + "aaa"},
        {"resource_url": "http://169.254.169.254/s2sp/data/x"},
        {"resource_url": url, "where": "delay > 3"},
        {"resource_url": url, "abstract_date": "[]"},
        {"resource_url": url, "top": "many"},
    ]
    token = url.rpartition("/")[2]
    for arguments in cases:
        result = call(server, "take", **arguments)
        assert result.is_error, arguments
        assert len(text_of(result)) > 20
        assert token not in text_of(result)
    assert seen == []


def test_a_failing_function(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def fail(rows: pl.DataFrame) -> str:
        raise ValueError("no delays on that day")

    result = call(server, "fail", body_data=BODY)
    assert (result.is_error, text_of(result)) == (True, "no delays on that day")


class Stats(BaseModel):
    mean: float
    day: date


@dataclass
class Point:
    x: float


class Row(TypedDict):
    a: int


@pytest.mark.parametrize(
    ("annotation", "value", "text", "structured"),
    [
        (str, "line", "line", {"result": "line"}),
        (int, 5, "5", {"result": 5}),
        (None, None, None, {"result": None}),
        (dict[str, float], {"mean": np.float32(0.5)}, '{"mean":0.5}', {"mean": 0.5}),
        (dict[str, float], {"mean": float("nan")}, '{"mean":"NaN"}', {"mean": "NaN"}),
        (float, float("-inf"), "-Infinity", {"result": "-Infinity"}),
        (Stats, Stats(mean=float("inf"), day=date(2013, 1, 1)), None, {"mean": "Infinity", "day": "2013-01-01"}),
        (Point, Point(float("nan")), None, {"x": "NaN"}),
        (Row, {"a": np.int64(3)}, '{"a":3}', {"a": 3}),
        (list[int], [np.int32(1), 2], "[1,2]", {"result": [1, 2]}),
        (list[dict[str, Any]], [{"t": pd.NaT, "b": b"\xff"}], '[{"t":null,"b":"/w=="}]', None),
        (Any, "line", "line", "unstructured"),
        ("none", {"a": np.arange(2)}, '{"a":[0,1]}', "unstructured"),
        ("none", {"t": np.datetime64("2013-01-01T05", "ns")}, '{"t":"2013-01-01T05:00:00.000000000"}', "unstructured"),
        ("none", [1, "a"], '[1,"a"]', "unstructured"),
        ("none", pa.scalar(7), "7", "unstructured"),
        ("none", Stats(mean=float("nan"), day=date(2013, 1, 1)), '{"mean":"NaN","day":"2013-01-01"}', "unstructured"),
    ],
)
def test_results(
    server: S2SPServer, call: Call, annotation: Any, value: Any, text: str | None, structured: Any
) -> None:
    def give(rows: pl.DataFrame) -> Any:
        return value

    if annotation == "none":
        del give.__annotations__["return"]
    else:
        give.__annotations__["return"] = annotation
    server.sd_consumer_tool()(give)
    result = call(server, "give", body_data=BODY)  # the client checks it against the listed output schema
    assert not result.is_error, result
    if structured == "unstructured":
        assert result.structured_content is None
    elif structured is not None:
        assert result.structured_content == structured
    if text is not None:
        assert text_of(result) == text
    if result.content and result.structured_content and "result" not in result.structured_content:
        assert json.loads(text_of(result)) == result.structured_content


def test_content_and_own_results_pass(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def chart(rows: pl.DataFrame) -> Image:
        return Image(data=b"png", format="png")

    @server.sd_consumer_tool
    def both(rows: pl.DataFrame):  # type: ignore[no-untyped-def]
        return ["caption", Image(data=b"png", format="png")]

    @server.sd_consumer_tool
    def own(rows: pl.DataFrame) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="mine")], structured_content={"k": 1})

    assert isinstance(call(server, "chart", body_data=BODY).content[0], ImageContent)
    assert [block.type for block in call(server, "both", body_data=BODY).content] == ["text", "image"]
    assert call(server, "own", body_data=BODY).structured_content == {"k": 1}


ANNOTATIONS: list[Any] = [pl.DataFrame, pa.Table, pd.DataFrame, pl.LazyFrame, "Unknown", list[dict[str, Any]]]


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_a_returned_frame_is_shown_as_rows(server: S2SPServer, call: Call, annotation: Any) -> None:
    def top(rows: pl.DataFrame) -> Any:
        return rows.lazy().select("a", nan=pl.lit(float("nan")))

    top.__annotations__["return"] = annotation
    server.sd_consumer_tool()(top)
    result = call(server, "top", body_data=BODY)
    assert not result.is_error, result
    assert text_of(result) == '[{"a":1,"nan":"NaN"},{"a":2,"nan":"NaN"}]'
    assert result.structured_content == {"result": json.loads(text_of(result))}


@pytest.mark.parametrize("form", [pl.DataFrame, pl.LazyFrame, pa.Table, pa.RecordBatchReader, pd.DataFrame])
def test_the_frame_itself_may_be_returned(server: S2SPServer, call: Call, form: Any) -> None:
    def same(rows: Any) -> Any:
        return rows

    same.__annotations__ = {"rows": form, "return": form}
    server.sd_consumer_tool()(same)
    result = call(server, "same", body_data=BODY)
    assert not result.is_error, text_of(result)
    assert result.structured_content == {"result": BODY}


def test_a_returned_frame_that_is_too_large_is_refused(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def grow(rows: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame({"t": ["x" * 1000] * 5000})

    result = call(server, "grow", body_data=BODY)
    assert result.is_error
    assert "1 MiB" in text_of(result)


def test_a_result_that_breaks_its_annotation(server: S2SPServer, call: Call) -> None:
    @server.sd_consumer_tool
    def wrong(rows: pl.DataFrame) -> int:
        return "secret value"  # type: ignore[return-value]

    @server.sd_consumer_tool
    def frame(rows: pl.DataFrame) -> None:
        return rows  # type: ignore[return-value]

    @server.sd_consumer_tool
    def picture(rows: pl.DataFrame) -> dict[str, int]:
        return Image(data=b"secret", format="png")  # type: ignore[return-value]

    for name in ("wrong", "frame", "picture"):
        result = call(server, name, body_data=BODY)
        assert result.is_error
        assert "return annotation" in text_of(result)
        assert "secret" not in text_of(result)
