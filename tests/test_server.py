"""S2SPServer over its transports: in memory, stdio and streamable HTTP, the last two in processes of their own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from framewire import DataPlane, LifecycleError, S2SPServer, SettingError
from framewire.tools._keeper import PlaneKeeper

MODES = ["auto", "legacy"]

SERVER = textwrap.dedent(
    """
    import sys
    from framewire import S2SPServer

    server = S2SPServer("numbers")

    @server.sd_resource_tool()
    async def numbers(n: int = 3) -> list[dict]:
        "Numbers."
        print("a stray print")
        return [{"n": i, "square": i * i} for i in range(n)]

    @server.sd_consumer_tool()
    def total(rows, column: str = "square") -> str:
        "Adds up a column."
        return str(rows[column].sum())

    @server.mcp.tool()
    def endpoint() -> str:
        return server.s2sp_endpoint

    if __name__ == "__main__":
        server.run(*sys.argv[1:2], **({"port": int(sys.argv[2]), "host": sys.argv[3]} if sys.argv[2:] else {}))
    """
)


PATIENCE_SECONDS = 120
"""Bound on any wait. Nothing here takes that long on any machine; it turns a hang into a failure."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server") / "numbers_server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture(scope="module")
def served(script: Path) -> Iterator[str]:
    """The base URL of a streamable HTTP server, for the tests whose subject is neither its start nor its end."""
    with http_server(script, seconds=3600) as (running, base):
        yield base
        assert running.poll() is None, "a test ended the server that all share"


def structured(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    found: dict[str, Any] = result.structured_content
    return found


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def is_listening(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as sock:
        sock.settimeout(PATIENCE_SECONDS)
        return sock.connect_ex((parts.hostname or "", parts.port or 0)) == 0


async def exercise(client: Client) -> dict[str, Any]:
    """Lists, publishes, consumes; returns the async reply."""
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"numbers", "total"} <= names
    reply = structured(await client.call_tool("numbers", {"n": 5, "abstract_domains": "n"}))
    assert reply["body_domains"] == ["square"]
    chosen = [row for row in reply["abstract"] if row["n"] >= 3]
    consumed = await client.call_tool("total", {"resource_url": reply["resource_url"], "abstract_data": chosen})
    assert text_of(consumed) == "25"
    typo = await client.call_tool("numbers", {"abstract_domain": "n"})
    assert typo.is_error
    assert "Did you mean 'abstract_domains'?" in text_of(typo)
    return reply


def make() -> S2SPServer:
    server = S2SPServer("numbers")

    @server.sd_resource_tool
    def numbers(n: int = 3) -> list[dict[str, int]]:
        return [{"n": i, "square": i * i} for i in range(n)]

    @server.sd_consumer_tool
    def total(rows: pl.DataFrame, column: str = "square") -> str:
        return str(rows[column].sum())

    return server


# --- in memory --------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_in_memory(mode: str) -> None:
    server = make()
    assert isinstance(server, MCPServer)
    assert server.mcp is server
    async with Client(server, mode=mode) as client:
        reply = await exercise(client)
        assert reply["resource_url"].startswith(server.s2sp_endpoint + "/s2sp/data/fw1")
    assert not is_listening(reply["resource_url"])


@pytest.mark.anyio
async def test_the_plane_starts_once_and_stops_with_the_last_client() -> None:
    server = make()
    async with Client(server) as first:
        url = (await exercise(first))["resource_url"]
        async with Client(server) as second:
            assert urlsplit((await exercise(second))["resource_url"]).port == urlsplit(url).port
        consumed = await first.call_tool("total", {"resource_url": url})
        assert text_of(consumed) == "30"
    async with Client(server) as third:
        await exercise(third)


@pytest.mark.anyio
async def test_a_server_of_consumers_alone_opens_no_port() -> None:
    server = S2SPServer("eater")

    @server.sd_consumer_tool
    def height(rows: pl.DataFrame) -> str:
        return str(rows.height)

    async with Client(server):
        with pytest.raises(LifecycleError):
            _ = server.s2sp_endpoint
    async with DataPlane() as plane, Client(server) as client:
        url = plane.publish([{"a": 1}]).resource_url
        assert text_of(await client.call_tool("height", {"resource_url": url})) == "1"


@pytest.mark.anyio
async def test_start_and_stop_as_in_the_reference() -> None:
    server = make()
    with pytest.raises(LifecycleError):
        _ = server.s2sp_endpoint
    await server.start()
    endpoint = server.s2sp_endpoint
    async with Client(server) as client:
        await exercise(client)
    assert is_listening(endpoint)
    await server.stop()
    assert not is_listening(endpoint)
    await server.stop()


@pytest.mark.anyio
async def test_the_authors_lifespan_passes_through() -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[dict[str, int]]:
        assert app is server
        entered.append(server.s2sp_endpoint)
        yield {"answer": 42}
        entered.append("left")

    server = S2SPServer("s", lifespan=lifespan)

    @server.sd_resource_tool
    def answer(ctx: Context[Any, Any]) -> list[dict[str, int]]:
        return [{"answer": ctx.request_context.lifespan_context["answer"]}]

    async with Client(server) as client:
        assert structured(await client.call_tool("answer", {})) == {"result": [{"answer": 42}]}
    assert entered[0].startswith("http://127.0.0.1:")
    assert entered[1:] == ["left"]


@pytest.mark.anyio
async def test_ttl_public_url_and_port() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = S2SPServer("s", port, "127.0.0.1", 60, public_url="https://data.example.org/x/")
    server.sd_resource_tool("t")(lambda: [{"a": 1}])
    async with Client(server) as client:
        reply = structured(await client.call_tool("t", {"abstract_domains": "a"}))
        assert reply["resource_url"].startswith("https://data.example.org/x/s2sp/data/fw1")
        assert is_listening(f"http://127.0.0.1:{port}")
    before = set(threading.enumerate())
    mounted = S2SPServer("s", public_url="https://data.example.org")
    mounted.sd_resource_tool("t")(lambda: [{"a": 1}])
    async with Client(mounted) as client:
        structured(await client.call_tool("t", {"abstract_domains": "a"}))
        assert [t.name for t in set(threading.enumerate()) - before if t.name == "framewire-data-plane"] == []


def test_bad_arguments_are_named() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"s2sp_port": 70_000}, "s2sp_port"),
        ({"cache_ttl": 0}, "cache_ttl"),
        ({"public_url": "example.org"}, "FRAMEWIRE_PUBLIC_URL"),
    ]
    for arguments, name in wrong:
        with pytest.raises(SettingError, match=name):
            S2SPServer("s", **arguments)
    with pytest.raises(TypeError, match="nothing"):
        S2SPServer("s", nothing=1)


def test_a_server_on_every_address_warns_that_its_loopback_url_reaches_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keeper = PlaneKeeper(S2SPServer("s").s2sp_settings, host="0.0.0.0", port=0)
    keeper.acquire()
    keeper.release()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


# --- stdio ------------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_stdio(script: Path, mode: str) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(script)], env=dict(os.environ))
    async with Client(parameters, mode=mode) as client:
        reply = await exercise(client)
    assert urlsplit(reply["resource_url"]).hostname == "127.0.0.1"


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "numbers", "arguments": {"abstract_domains": "n"}},
}


@contextmanager
def process(*arguments: str, seconds: float = PATIENCE_SECONDS, **options: Any) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # The SDK's log handler wraps lines. A process that was told to end is ended once its drain is over: here never.
    environment = {**os.environ, "COLUMNS": "300", "FRAMEWIRE_DRAIN_SECONDS": str(PATIENCE_SECONDS)}
    with subprocess.Popen([sys.executable, *arguments], text=True, env=environment, **{**pipes, **options}) as running:
        # A test that waits for output that never comes fails, and does not hang.
        watchdog = threading.Timer(seconds, running.kill)
        watchdog.start()
        try:
            yield running
        finally:
            watchdog.cancel()
            running.kill()


def say(running: subprocess.Popen[str], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Send messages; read one line of stdout for each that has an id. Every line must be JSON-RPC."""
    assert running.stdin is not None
    assert running.stdout is not None
    answers = []
    for message in messages:
        running.stdin.write(json.dumps(message) + "\n")
        running.stdin.flush()
        if "id" in message:
            answers.append(json.loads(running.stdout.readline()))
    return answers


def test_every_line_on_stdout_is_json_rpc_and_the_end_of_stdin_ends_the_process(script: Path) -> None:
    with process(str(script)) as running:
        started, called = say(running, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, CALL)
        assert started["result"]["serverInfo"]["name"] == "numbers"
        reply = called["result"]["structuredContent"]
        assert json.loads(called["result"]["content"][0]["text"]) == reply
        with urllib.request.urlopen(reply["resource_url"], timeout=PATIENCE_SECONDS) as answer:
            assert json.load(answer)["total_rows"] == 3
        rest, errors = running.communicate(timeout=PATIENCE_SECONDS)
        assert rest == ""
        assert running.returncode == 0, errors
        assert reply["resource_url"].rpartition("/")[2] not in errors
        assert "a stray print" in errors


def test_sigterm_ends_a_stdio_server_as_the_end_of_stdin_does(script: Path) -> None:
    with process(str(script)) as running:
        say(running, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, CALL)
        running.send_signal(signal.SIGTERM)
        # 0, not -SIGTERM: the process is not killed by the signal but shuts down. Its stdin is still open.
        assert running.wait(PATIENCE_SECONDS) == 0


def test_mcp_run_finds_the_server(script: Path) -> None:
    with process("-c", "from mcp.cli import app; app()", "run", str(script)) as running:
        (started,) = say(running, INITIALIZE)
        assert started["result"]["serverInfo"]["name"] == "numbers"


# --- streamable HTTP --------------------------------------------------------------------------------------------------


@contextmanager
def http_server(script: Path, seconds: float = PATIENCE_SECONDS) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The script under streamable HTTP on a free port, and its base URL; killed after ``seconds``."""
    with process("-u", str(script), "streamable-http", "0", "127.0.0.1", seconds=seconds) as running:
        assert running.stderr is not None
        seen = ""
        for line in running.stderr:
            seen += " ".join(line.split()) + " "
            if found := re.search(r" at +(http://\S+), MCP path", seen):
                yield running, found[1]
                return
        raise AssertionError(seen)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_streamable_http_serves_both_planes_on_one_port(served: str, mode: str) -> None:
    async with Client(f"{served}/mcp", mode=mode) as client:
        reply = await exercise(client)
        assert text_of(await client.call_tool("endpoint", {})) == served
    assert reply["resource_url"].startswith(served + "/s2sp/data/fw1")

    def health() -> Any:
        with urllib.request.urlopen(f"{served}/s2sp/health", timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    assert (await asyncio.to_thread(health))["status"] == "ok"


def test_streamable_http_refuses_a_foreign_host_on_the_data_plane(served: str) -> None:
    request = urllib.request.Request(f"{served}/s2sp/health", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=PATIENCE_SECONDS)
    assert caught.value.code == 421
    caught.value.close()


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_an_http_server_that_has_logged_no_token(script: Path, number: signal.Signals) -> None:
    with http_server(script) as (running, base):
        urls = []
        for mode in MODES:
            async with Client(f"{base}/mcp", mode=mode) as client:
                urls.append((await exercise(client))["resource_url"])
        running.send_signal(number)
        rest, errors = await asyncio.to_thread(running.communicate, timeout=PATIENCE_SECONDS)
        assert "Traceback" not in errors
        for url in urls:
            assert url.rpartition("/")[2] not in rest + errors
        assert "s2sp/data" not in rest + errors
        # Only the tool's own print may be there: nothing of framewire's or uvicorn's.
        assert set(rest.splitlines()) <= {"a stray print"}


def test_a_port_in_use_is_a_plain_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=str(port)):
            make().run("streamable-http", port=port)


def test_an_open_stream_does_not_hold_up_the_end(script: Path) -> None:
    with http_server(script) as (running, base):
        parts = urlsplit(base)
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as idle:
            idle.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
            running.send_signal(signal.SIGTERM)
            running.wait(PATIENCE_SECONDS)  # the client holds its half of the connection open all the while


@pytest.mark.anyio
async def test_an_app_mounted_elsewhere_has_a_listener_of_its_own() -> None:
    server = make()
    app = server.streamable_http_app()
    async with app.router.lifespan_context(app):
        endpoint = server.s2sp_endpoint
        assert is_listening(endpoint)
    assert not is_listening(endpoint)


# --- the reference's documented examples ------------------------------------------------------------------------------

WEATHER = '''
from mcp_sd import S2SPServer

server = S2SPServer("weather-server")

async def fetch_from_nws(area: str) -> dict:
    rows = [{"event": f"Wind {i}", "severity": "Severe", "areaDesc": area, "parameters": {"k": [i]}} for i in range(3)]
    return {"features": [{"properties": row} for row in rows]}

@server.sd_resource_tool()
async def get_alerts(area: str) -> list[dict]:
    """Get weather alerts — returns ~30 columns per alert."""
    data = await fetch_from_nws(area)
    return [feature["properties"] for feature in data["features"]]

if __name__ == "__main__":
    server.run()
'''
STATS = '''
from mcp_sd import S2SPServer

server = S2SPServer("stats-server")

def generate_chart(rows):
    return f"chart of {len(rows)}: {rows[0]}"

@server.sd_consumer_tool()
async def draw_chart(rows: list[dict]) -> str:
    """Draw a chart from merged rows (abstract + body)."""
    return generate_chart(rows)

if __name__ == "__main__":
    server.run()
'''


def stdio_client(path: Path) -> Client:
    return Client(StdioServerParameters(command=sys.executable, args=[str(path)], env=dict(os.environ)))


def in_memory_client(path: Path) -> Client:
    return Client(runpy.run_path(str(path))["server"], mode="legacy")


# Both protocols over stdio are test_stdio's subject.
@pytest.mark.anyio
@pytest.mark.parametrize("connect", [stdio_client, in_memory_client])
async def test_the_references_examples_run_with_only_the_import_changed(
    tmp_path: Path, connect: Callable[[Path], Client]
) -> None:
    paths = []
    for name, source in (("weather", WEATHER), ("stats", STATS)):
        paths.append(tmp_path / f"{name}.py")
        paths[-1].write_text(source.replace("from mcp_sd import", "from framewire import"))
    async with connect(paths[0]) as weather, connect(paths[1]) as stats:
        plain = await weather.call_tool("get_alerts", {"area": "CA"})
        assert len(json.loads(text_of(plain))) == 3
        reply = json.loads(text_of(await weather.call_tool("get_alerts", {"area": "CA", "abstract_domains": "event"})))
        chart = await stats.call_tool(
            "draw_chart",
            {
                "abstract_data": json.dumps(reply["abstract"][1:]),
                "resource_url": reply["resource_url"],
                "column_mapping": '{"event": "alert_type", "areaDesc": "location"}',
            },
        )
        assert text_of(chart).startswith("chart of 2: {'_row_id': 1, 'alert_type': 'Wind 1'")
        assert "'location': 'CA'" in text_of(chart)
