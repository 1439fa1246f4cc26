"""The demo's agent: MCP clients of both servers, and a tally of everything that crosses it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from mcp import Client, StdioServerParameters

HERE = Path(__file__).parent
OUT = HERE / "out"
START_SECONDS = 60
STOP_SECONDS = 10


class Off(Exception):
    """Something was not as it must be."""


def leaves(group: BaseExceptionGroup[Off]) -> Iterator[Off]:
    """The faults in a group, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def check(ok: bool, otherwise: str) -> None:
    """Stop the demo with `otherwise` unless `ok`."""
    if not ok:
        raise Off(otherwise)


@dataclass(frozen=True)
class Crossed:
    """What an agent's context took in and gave out: arguments written and results read, as JSON texts."""

    texts: tuple[str, ...]


class Agent:
    """Calls the tools of both servers and keeps what a model would have had to read and write."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self._clients = clients
        self._texts: list[str] = []

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; its text, which must be a JSON object.

        Raises:
            Off: The tool answered with an error or with something else.
        """
        client = self._clients["flights" if tool == "departures" else "stats"]
        result = await client.call_tool(tool, arguments)
        text = "".join(getattr(block, "text", "") for block in result.content)
        check(not result.is_error, f"{tool} answered: {text}")
        self._texts += [json.dumps(arguments), text]
        answer = json.loads(text)
        check(isinstance(answer, dict), f"{tool} answered with no JSON object")
        return dict(answer)

    def say(self, text: str, path: str = "") -> None:
        """Show progress."""
        print(f"  ok  {text}", flush=True)
        if path:
            where = Path(path)
            print(f"        {where.relative_to(Path.cwd()) if where.is_relative_to(Path.cwd()) else where}", flush=True)

    def take(self) -> Crossed:
        """What crossed the agent since the last time."""
        texts, self._texts = tuple(self._texts), []
        return Crossed(texts)


@asynccontextmanager
async def connected(kind: str) -> AsyncIterator[Agent]:
    """An agent connected to both servers, each in a process of its own.

    Args:
        kind: `stdio` or `http`.
    """
    scripts = {name: HERE / f"{name}_server.py" for name in ("flights", "stats")}
    async with AsyncExitStack() as stack:
        clients = {}
        if kind == "stdio":  # the client starts the process, and ends it by closing its stdin
            for name, script in scripts.items():
                server = StdioServerParameters(command=sys.executable, args=[str(script)])
                clients[name] = await stack.enter_async_context(Client(server))
        else:  # both start at once
            servers = {name: await stack.enter_async_context(_http_server(script)) for name, script in scripts.items()}
            for name, server_process in servers.items():
                await server_process.listening()
                clients[name] = await stack.enter_async_context(Client(f"http://127.0.0.1:{server_process.port}/mcp"))
        yield Agent(clients)


@dataclass(frozen=True)
class _HttpServer:
    process: Process
    port: int
    log: str

    async def listening(self) -> None:
        """Wait until the server accepts connections."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            check(self.process.returncode is None, f"a server ended before it listened; see {self.log}")
            try:
                stream = await anyio.connect_tcp("127.0.0.1", self.port)
            except OSError:
                await anyio.sleep(0.05)
            else:
                await stream.aclose()
                return
        raise Off(f"a server did not listen within {START_SECONDS} s; see {self.log}")


@asynccontextmanager
async def _http_server(script: Path) -> AsyncIterator[_HttpServer]:
    """A server's process, which may not listen yet; ended on the way out."""
    port = _free_port()
    command = [sys.executable, str(script), "--http", "--port", str(port)]
    OUT.mkdir(exist_ok=True)
    with (OUT / f"{script.stem}.log").open("wb") as log:
        process = await anyio.open_process(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield _HttpServer(process, port, log.name)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    with anyio.move_on_after(STOP_SECONDS) as waited:
        await process.wait()
    if waited.cancelled_caught:
        process.kill()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
