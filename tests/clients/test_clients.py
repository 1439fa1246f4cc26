"""Real hosts, each of its own environment: two resource servers and a consumer, over stdio and streamable HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.processes import ROOT, Process

HERE: Final = Path(__file__).parent
SERVERS: Final = {
    "stations": [str(HERE / "resource_server.py"), "stations", "50"],
    "readings": [str(HERE / "resource_server.py"), "readings", "70"],
    "analysis": [str(HERE / "consumer_server.py")],
}
ANSWERS: Final = {name: {"rows": 2, "sum": 3, "last": f"{name}-2"} for name in ("stations", "readings")}
HOSTS: Final = {
    "mcp": "clients",
    "fastmcp": "fastmcp",
    "langchain": "clients",
    "pydantic_ai": "clients",
    "openai_agents": "clients",
    "inspector": "clients",
}
"""Host script, and the environment that it runs in."""

pytestmark = pytest.mark.clients


def _run(host: str, servers: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    variable = f"FRAMEWIRE_{HOSTS[host].upper()}_PYTHON"
    python = os.environ.get(variable)
    assert python, f"{variable} is not set: run make test-clients"
    command = [python, str(HERE / "hosts" / f"{host}_host.py"), json.dumps(servers)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _stdio() -> dict[str, Any]:
    return {name: {"command": sys.executable, "args": [*line, "stdio"]} for name, line in SERVERS.items()}


@pytest.fixture(scope="module")
def http() -> Iterator[dict[str, Any]]:
    urls = {}
    with ExitStack() as stack:
        for name, line in SERVERS.items():
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            process = stack.enter_context(Process(*line, str(port), env={"PYTHONPATH": str(ROOT)}))
            while not _listens(port):
                assert process.popen.poll() is None, process.err.rest()
            urls[name] = {"url": f"http://127.0.0.1:{port}/mcp"}
        yield urls


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "inspector"])
def test_a_whole_exchange_over_stdio(host: str) -> None:
    done = _run(host, _stdio())
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == ANSWERS


@pytest.mark.parametrize("host", HOSTS)
def test_a_whole_exchange_over_http(host: str, http: dict[str, Any]) -> None:
    done = _run(host, http)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == ANSWERS
