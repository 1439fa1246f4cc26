"""Servers as their authors write them: every form of the decorators, every kind of table in and out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypedDict, assert_type

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from framewire import PeerPolicy, S2SPServer, Settings


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, int]]:
    yield {"answer": 42}


class Flight(TypedDict):
    origin: str
    delay: float | None


bare = S2SPServer()
server = S2SPServer("flights", 8001, "127.0.0.1", 600, lifespan=lifespan, instructions="Flights.")
proxied = S2SPServer(
    "proxied",
    cache_ttl=60.0,
    public_url="https://data.example.org",
    settings=Settings(max_rows=10),
    policy=PeerPolicy(["http://127.0.0.1:*"]),
)


@server.sd_resource_tool
def without_parentheses(origin: str) -> pl.DataFrame:
    return pl.DataFrame({"origin": [origin]})


@server.sd_resource_tool()
async def rows(n: int = 3) -> list[dict[str, Any]]:
    return [{"n": i} for i in range(n)]


@server.sd_resource_tool("named", "All flights.", title="Flights", abstract_limit=50)
def typed_rows(ctx: Context[Any, Any], *, month: int) -> Sequence[Flight]:
    return [{"origin": "JFK", "delay": None}]


@server.sd_resource_tool(name="lazy", annotations=ToolAnnotations(read_only_hint=True), meta={"a": 1})
def lazy() -> pl.LazyFrame:
    return pl.LazyFrame({"a": [1]})


@server.s2sp_resource_tool()
def arrow() -> pa.Table:
    return pa.table({"a": [1]})


@server.s2sp_tool()
def refuses(month: int) -> pl.DataFrame | CallToolResult:
    if month > 12:
        return CallToolResult(content=[TextContent(type="text", text="no such month")], is_error=True)
    return pl.DataFrame()


@server.sd_tool
def alias() -> pl.DataFrame:
    return pl.DataFrame()


@server.sd_consumer_tool
def total(rows: pl.DataFrame, column: str = "n") -> str:
    return str(rows[column].sum())


@server.sd_consumer_tool()
async def chart(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {"rows": len(rows)}


@server.s2sp_consumer_tool("count", "Counts.", title="Count")
def count(table: pa.Table, by: Sequence[str] = ()) -> pl.DataFrame:
    return pl.DataFrame({"rows": [0]})


@server.mcp.tool()
def plain(text: str) -> str:
    return text


# A decorated function is the function itself.
assert_type(without_parentheses("JFK"), pl.DataFrame)
assert_type(lazy(), pl.LazyFrame)
assert_type(total(pl.DataFrame({"n": [1]}), column="n"), str)
assert_type(alias(), pl.DataFrame)
assert_type(server.mcp, S2SPServer)
assert_type(server.s2sp_settings, Settings)


async def calls() -> None:
    assert_type(server.s2sp_endpoint, str)
    assert_type(await rows(n=5), list[dict[str, Any]])
    assert_type(await chart([{"a": 1}]), dict[str, int])
    assert_type(await server.start(), None)
    assert_type(await server.stop(), None)


def main() -> None:
    server.run()
    server.run("streamable-http", host="127.0.0.1", port=0)
    server.run(transport="sse")
