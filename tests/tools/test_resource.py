"""Resource tools: the three replies, their bounds and their errors."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from mcp import Client
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from framewire import S2SPServer, SettingError, wire
from framewire.arrow.compact import compact
from framewire.publish import describe_schema, publish_table
from framewire.split import add_row_id
from framewire.table import to_table

Call = Callable[..., CallToolResult]
FRAME = pl.DataFrame({"origin": ["JFK", "LGA", "EWR"], "delay": [1.5, None, float("nan")], "id": [2**60, 2, 3]})


def text_of(result: CallToolResult) -> str:
    assert len(result.content) == 1
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def fail_on_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.fixture
def flights(server: S2SPServer) -> S2SPServer:
    @server.sd_resource_tool()
    def flights(n: int = 1) -> pl.DataFrame:
        return pl.concat([FRAME] * n)

    return server


def test_async_reply(flights: S2SPServer, call: Call) -> None:
    result = call(flights, "flights", abstract_domains="origin, delay,origin")
    assert not result.is_error
    reply = json.loads(text_of(result), parse_constant=fail_on_constant)
    assert reply == result.structured_content
    assert list(reply) == [
        "total_rows",
        "columns",
        "schema",
        "abstract_domains",
        "body_domains",
        "resource_url",
        "expires_at",
        "shown_rows",
        "truncated",
        "abstract",
    ]
    assert " " not in text_of(result).replace(", ", "")
    assert (reply["total_rows"], reply["shown_rows"], reply["truncated"]) == (3, 3, False)
    assert reply["columns"] == ["origin", "delay", "id"]
    assert list(reply["schema"]) == ["_row_id", "origin", "delay", "id"]
    assert reply["schema"]["_row_id"] == "int64"
    assert (reply["abstract_domains"], reply["body_domains"]) == (["origin", "delay"], ["id"])
    assert reply["abstract"] == [
        {"_row_id": 0, "origin": "JFK", "delay": 1.5},
        {"_row_id": 1, "origin": "LGA", "delay": None},
        {"_row_id": 2, "origin": "EWR", "delay": "NaN"},
    ]
    assert "/s2sp/data/fw1" in reply["resource_url"]
    assert reply["expires_at"].endswith("Z")


@pytest.mark.parametrize(("mode", "published"), [("async", 1), ("sync", 0)])
def test_a_table_is_numbered_and_described_once(
    flights: S2SPServer, call: Call, monkeypatch: pytest.MonkeyPatch, mode: str, published: int
) -> None:
    counts: Counter[str] = Counter()

    def count(function: Callable[..., Any]) -> None:
        """Count the calls by every module of framewire that has imported the function."""

        @functools.wraps(function)
        def counted(*args: Any, **options: Any) -> Any:
            counts[function.__name__] += 1
            return function(*args, **options)

        for name, module in list(sys.modules.items()):
            if name.startswith("framewire") and getattr(module, function.__name__, None) is function:
                monkeypatch.setattr(module, function.__name__, counted)

    for function in (to_table, compact, add_row_id, describe_schema, publish_table):
        count(function)
    assert not call(flights, "flights", abstract_domains="origin", mode=mode).is_error
    expected = {"to_table": 1, "compact": 1, "add_row_id": 1, "describe_schema": 1, "publish_table": published}
    assert {name: counts[name] for name in expected} == expected


def test_sync_reply_holds_the_body_and_no_handle(flights: S2SPServer, call: Call) -> None:
    result = call(flights, "flights", abstract_domains=["origin"], mode="sync", n=50)
    reply = json.loads(text_of(result))
    assert reply == result.structured_content
    assert not {"resource_url", "expires_at"} & set(reply)
    assert (reply["total_rows"], reply["shown_rows"], reply["truncated"]) == (150, 100, True)
    assert len(reply["abstract"]) == 100
    assert len(reply["body"]) == 150
    # The abstract is cut, so the body has its column as well: nothing is lost.
    assert reply["body"][3] == {"_row_id": 3, "origin": "JFK", "delay": 1.5, "id": str(2**60)}
    short = call(flights, "flights", abstract_domains=["origin"], mode="sync", n=3).structured_content
    assert short is not None
    assert short["body"][3] == {"_row_id": 3, "delay": 1.5, "id": str(2**60)}


def test_plain_reply(flights: S2SPServer, call: Call) -> None:
    result = call(flights, "flights")
    assert result.structured_content == {"result": json.loads(text_of(result))}
    assert json.loads(text_of(result))[0] == {"origin": "JFK", "delay": 1.5, "id": str(2**60)}


@pytest.mark.parametrize("domains", ["_row_id", "[]", ",", '["_row_id"]', []])
def test_row_ids_alone(flights: S2SPServer, call: Call, domains: Any) -> None:
    reply = call(flights, "flights", abstract_domains=domains).structured_content
    assert reply is not None
    assert reply["abstract"] == [{"_row_id": 0}, {"_row_id": 1}, {"_row_id": 2}]
    assert (reply["abstract_domains"], reply["body_domains"]) == ([], ["origin", "delay", "id"])


@pytest.mark.parametrize("domains", ["", "  ", None])
def test_no_domains_is_a_plain_reply(flights: S2SPServer, call: Call, domains: Any) -> None:
    reply = call(flights, "flights", abstract_domains=domains).structured_content
    assert list(reply or {}) == ["result"]


def test_awkward_column_names(server: S2SPServer, call: Call) -> None:
    server.sd_resource_tool("t")(lambda: [{"a,b": 1, "null": 2, "true": 3, "5": 4, " x ": 5}])
    for domains in (["a,b"], '["a,b"]', "null", "true", "5", '[" x "]'):
        reply = call(server, "t", abstract_domains=domains).structured_content
        assert reply is not None, domains
        assert len(reply["abstract_domains"]) == 1, domains
        assert len(reply["abstract"][0]) == 2, domains


def test_errors_say_what_to_do(flights: S2SPServer, call: Call) -> None:
    cases = {
        "There is no column 'orign'. Did you mean 'origin'? The columns are: origin, delay, id.": {
            "abstract_domains": "orign"
        },
        "mode is 'asinc'. It takes 'async' (body behind resource_url) or 'sync' (body inline).": {"mode": "asinc"},
        "There is no parameter 'abstract_domain'. Did you mean 'abstract_domains'? "
        "Nothing was done. Parameters: abstract_domains, mode, n.": {"abstract_domain": "origin"},
    }
    for text, arguments in cases.items():
        result = call(flights, "flights", **arguments)
        assert result.is_error
        assert text_of(result) == text
        assert result.structured_content is None
    assert call(flights, "flights", abstract_domains="[1]").is_error
    assert flights.data_plane.stats().bodies == 0


def test_unknown_arguments_are_the_sdks_for_its_own_tools(flights: S2SPServer, call: Call) -> None:
    @flights.mcp.tool()
    def own(n: int = 1) -> str:
        return str(n)

    assert not call(flights, "own", m=2).is_error
    flights.remove_tool("flights")
    flights.mcp.tool("flights")(own)
    assert not call(flights, "flights", abstract_domain="x").is_error


def test_abstract_limit(server: S2SPServer, call: Call) -> None:
    server.sd_resource_tool("none", abstract_limit=0)(lambda: FRAME)
    server.sd_resource_tool("two", abstract_limit=2)(lambda: FRAME)
    for name, shown in (("none", 0), ("two", 2)):
        reply = call(server, name, abstract_domains="id").structured_content
        assert reply is not None
        assert (reply["shown_rows"], reply["truncated"], len(reply["abstract"])) == (shown, True, shown)
    wrong: list[Any] = [-1, True, "5"]
    for bad in wrong:
        with pytest.raises(SettingError, match="abstract_limit"):
            server.sd_resource_tool(abstract_limit=bad)


def message_bytes(result: CallToolResult) -> int:
    return len(result.model_dump_json(by_alias=True).encode())


def test_every_reply_fits_into_the_message_that_old_clients_read(server: S2SPServer, call: Call) -> None:
    quotes = pa.table({"t": ['"\\é' * 1000] * 1000, "n": range(1000)})
    server.sd_resource_tool("quotes", abstract_limit=1000)(lambda: quotes)
    plain = call(server, "quotes")
    assert plain.is_error
    assert "abstract_domains" in text_of(plain)
    assert "t, n" in text_of(plain)
    inline = call(server, "quotes", abstract_domains="n", mode="sync")
    assert inline.is_error
    assert "mode='async'" in text_of(inline)
    # An abstract is cut to what fits, and says so.
    shown = call(server, "quotes", abstract_domains="t")
    reply = shown.structured_content
    assert reply is not None
    assert 0 < reply["shown_rows"] < 1000
    assert reply["truncated"] is True
    assert wire.MAX_REPLY_BYTES * 0.9 < message_bytes(shown) <= wire.MAX_REPLY_BYTES
    assert server.data_plane.stats().bodies == 0  # stopped with the client; nothing was left by the refused calls


def test_a_plain_reply_just_under_the_limit_fits(server: S2SPServer, call: Call) -> None:
    server.sd_resource_tool("t")(lambda n: pa.table({"t": ["x" * 100] * n}))
    most = (wire.MAX_REPLY_BYTES - 4096) // (2 * len('{"t":""},') + 4 + 200)  # each row twice, quoted once
    fits = call(server, "t", n=most)
    assert not fits.is_error
    assert wire.MAX_REPLY_BYTES * 0.98 < message_bytes(fits) < wire.MAX_REPLY_BYTES
    assert call(server, "t", n=most + 1).is_error


@pytest.mark.parametrize(
    "empty", [pl.DataFrame(schema={"a": pl.Int32}), pa.table({"a": pa.array([], pa.int32())}), []], ids=repr
)
def test_empty_tables_are_ordinary(server: S2SPServer, call: Call, empty: Any) -> None:
    server.sd_resource_tool("t")(lambda: empty)
    assert call(server, "t").structured_content == {"result": []}
    reply = call(server, "t", abstract_domains="_row_id").structured_content
    assert reply is not None
    assert (reply["total_rows"], reply["shown_rows"], reply["truncated"], reply["abstract"]) == (0, 0, False, [])
    if not isinstance(empty, list):
        assert reply["schema"] == {"_row_id": "int64", "a": "int32"}


@pytest.mark.parametrize("value", ["text", {"a": 1}, None, 5, object()], ids=lambda v: type(v).__name__)
def test_what_is_no_table_is_refused(server: S2SPServer, call: Call, value: Any) -> None:
    server.sd_resource_tool("t")(lambda: value)
    for arguments in ({}, {"abstract_domains": "a"}):
        result = call(server, "t", **arguments)
        assert result.is_error
        assert "pl.DataFrame" in text_of(result) or "polars" in text_of(result)


def test_exceptions_reach_the_model_as_their_message(
    server: S2SPServer, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    raised: list[BaseException] = []

    @server.sd_resource_tool
    async def fail() -> pl.DataFrame:
        raise raised[-1]

    @server.sd_resource_tool
    def fail_sync() -> pl.DataFrame:
        raise raised[-1]

    expected = {
        "no such airport": ValueError("no such airport"),
        "RuntimeError": RuntimeError(),
        "KeyError: 'JFK'": KeyError("JFK"),
        "half \\ud800": OSError("half \ud800"),
        "Error executing tool fail: told": ToolError("told"),
    }
    with caplog.at_level(logging.CRITICAL):
        for text, error in expected.items():
            raised.append(error)
            result = call(server, "fail")
            assert result.is_error
            assert text_of(result) == text
            assert "Traceback" not in text_of(result)
            assert text_of(call(server, "fail_sync")).replace("fail_sync", "fail") == text
        raised.append(ValueError("x" * 100_000))
        assert len(text_of(call(server, "fail"))) < 9_000
        raised.append(StopIteration())
        assert call(server, "fail_sync").is_error
        raised.append(type("PanicException", (BaseException,), {})("polars panicked"))
        assert text_of(call(server, "fail")) == "polars panicked"


def test_a_protocol_error_passes(server: S2SPServer) -> None:
    @server.sd_resource_tool
    def fail() -> pl.DataFrame:
        raise MCPError(code=-32001, message="protocol")

    async def main() -> None:
        async with Client(server) as client:
            with pytest.raises(MCPError, match="protocol"):
                await client.call_tool("fail", {})

    asyncio.run(main())


def test_a_result_of_the_authors_own(server: S2SPServer, call: Call) -> None:
    content = [TextContent(type="text", text="not today")]
    server.sd_resource_tool("refuses")(lambda: CallToolResult(content=[*content], is_error=True))
    server.sd_resource_tool("leaks")(lambda: CallToolResult(content=[*content]))
    assert text_of(call(server, "refuses")) == "not today"
    leaked = call(server, "leaks", abstract_domains="a")
    assert leaked.is_error
    assert "not today" not in text_of(leaked)


def test_threads(server: S2SPServer) -> None:
    """Sync functions and conversion leave the event loop free; async functions run on it."""
    where: dict[str, int] = {}

    class Converted:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            where["convert"] = threading.get_ident()
            return pa.table({"a": [1]}).__arrow_c_stream__(requested_schema)

    @server.sd_resource_tool
    def sync() -> Any:
        where["sync"] = threading.get_ident()
        return Converted()

    @server.sd_resource_tool
    async def on_loop() -> Any:
        where["async"] = threading.get_ident()
        return Converted()

    async def main() -> None:
        where["loop"] = threading.get_ident()
        async with Client(server) as client:
            for name in ("sync", "on_loop"):
                where.pop("convert", None)
                assert not (await client.call_tool(name, {"abstract_domains": "a"})).is_error
                assert where["convert"] != where["loop"]

    asyncio.run(main())
    assert where["sync"] != where["loop"] == where["async"]


def test_many_calls_at_once_do_not_deadlock(server: S2SPServer) -> None:
    started = threading.Barrier(30, timeout=120)

    @server.sd_resource_tool
    def slow(n: int) -> pl.DataFrame:
        started.wait()
        return pl.DataFrame({"n": [n]})

    async def main() -> list[Any]:
        async with Client(server) as client:
            calls = [client.call_tool("slow", {"n": n, "abstract_domains": "n"}) for n in range(30)]
            return [r.structured_content for r in await asyncio.gather(*calls)]

    assert [r["abstract"][0]["n"] for r in asyncio.run(main())] == list(range(30))
