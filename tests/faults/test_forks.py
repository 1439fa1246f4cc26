"""Nothing of a server survives into a forked child: tools may start processes in any way, and the server goes on."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.faults.forking_server import WAYS
from tests.faults.forms import trials
from tests.faults.processes import ROOT, Process

SERVER = ROOT / "tests/faults/forking_server.py"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore::DeprecationWarning"}


@asynccontextmanager
async def _client(transport: str) -> AsyncIterator[Client]:
    if transport == "stdio":
        parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER), "stdio"], env=_environment())
        async with Client(parameters) as client:
            yield client
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Process(str(SERVER), str(port), env=_environment()) as process:
        while not _listens(port):
            assert process.popen.poll() is None, process.err.rest()
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            yield client
        process.popen.terminate()
        assert process.popen.wait(60) in (0, -15)


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@trials(2, 20)
@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
async def test_a_tool_may_start_processes(transport: str, trials: int, runtime: Path) -> None:
    async with _client(transport) as client:
        for way in WAYS:
            for _ in range(trials):
                result = await client.call_tool(way, {})
                assert result.content[0].text == ("-15" if way == "terminate" else "14"), way  # type: ignore[union-attr]


@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
async def test_a_child_holds_no_claim_of_its_parents(transport: str, runtime: Path) -> None:
    async with _client(transport) as client:
        result = await client.call_tool("claim", {"url": "http://127.0.0.1:1"})
        assert result.content[0].text == "1"  # type: ignore[union-attr]
