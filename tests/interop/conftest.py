"""The reference implementation as a peer. mcp-sd 0.1.2 needs mcp<2: it has an environment and processes of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framewire import DataPlane
from tests.interop.peer import Peer

HERE = Path(__file__).parent
WANTED = "0.1.2"


@pytest.fixture(scope="session")
def mcp_sd_python() -> str:
    """The interpreter that has the reference, or a skip that says how to get one."""
    default = HERE.parent.parent / ".venv-mcp-sd" / "bin" / "python"
    python = os.environ.get("FRAMEWIRE_MCP_SD_PYTHON") or str(default)
    if not Path(python).exists():
        pytest.skip(f"no interpreter at {python}; run `make setup-peer`, or set FRAMEWIRE_MCP_SD_PYTHON")
    code = "from importlib.metadata import version; print(version('mcp-sd'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if found.stdout.strip() != WANTED:
        pytest.skip(f"{python} has no mcp-sd {WANTED}; run `make setup-peer`, or set FRAMEWIRE_MCP_SD_PYTHON")
    return python


@pytest.fixture(scope="session")
def peer(mcp_sd_python: str) -> Iterator[Peer]:
    with Peer(mcp_sd_python) as process:
        yield process


@pytest.fixture(scope="session")
def plane() -> Iterator[DataPlane]:
    with DataPlane() as running:
        yield running


@pytest.fixture(autouse=True)
def _reference_servers_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They register nowhere and take random ports, so a consumer of theirs must be told about loopback."""
    monkeypatch.setenv("FRAMEWIRE_ALLOW_PEERS", "http://127.0.0.1:*")
