"""Who is measured. Each contender is a module with a server and a client, which run in processes of their own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

ROOT = Path(__file__).parents[2]


class Server(Protocol):
    """One side of a contender. Made in a fresh process, ended with it."""

    def publish(self, table: pa.Table) -> None:
        """Take the table and be ready to serve it."""

    def handles(self, count: int) -> list[str]:
        """What clients pass to ``fetch``: ``count`` of them, each good for one fetch at least."""


class Client(Protocol):
    """The other side. ``fetch`` may be called from several threads at once."""

    def fetch(self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None) -> Any:
        """Fetch into this process: a ``pl.DataFrame`` (a filled buffer in the case of raw sockets)."""


@dataclass(frozen=True)
class Contender:
    """A row of the tables.

    Attributes:
        name: As ``--contenders`` takes it.
        module: Where ``make_server()`` and ``make_client()`` are.
        what: One line for the reader.
        packages: Distributions whose versions are reported.
        options: Passed to ``make_server`` and ``make_client``.
        peer: Runs in the environment of the reference implementation.
        exact: Whether the frame has the table's own types.
        max_rows: Rows of a table that it can be asked to move in reasonable time and memory.
    """

    name: str
    module: str
    what: str
    packages: tuple[str, ...] = ("pyarrow", "polars")
    options: tuple[tuple[str, Any], ...] = ()
    peer: bool = False
    exact: bool = True
    max_rows: int | None = None

    def python(self) -> str:
        """The interpreter to run it with."""
        return peer_python() if self.peer else sys.executable

    def unavailable(self) -> str | None:
        """Why it cannot run here, or None."""
        if self.peer and not Path(peer_python()).exists():
            return "the environment of the reference implementation is missing: make setup-peer"
        check = getattr(importlib.import_module(self.module), "unavailable", None) if not self.peer else None
        return check() if check else None


def peer_python() -> str:
    """The Python of the reference implementation's environment, which must be of this Python's version."""
    return os.environ.get("FRAMEWIRE_MCP_SD_PYTHON", str(ROOT / ".venv-mcp-sd" / "bin" / "python"))


_HTTP = ("framewire", "pyarrow", "polars", "uvicorn", "uvloop", "httptools", "xxhash")
_USER = ("starlette", "uvicorn", "uvloop", "httptools", "httpx", "pyarrow", "polars")

CONTENDERS: dict[str, Contender] = {
    c.name: c
    for c in (
        Contender("framewire", "bench.contenders.framewire_http", "HTTP, trusted peer", _HTTP, (("trusted", True),)),
        Contender("framewire-validated", "bench.contenders.framewire_http", "HTTP, every value checked", _HTTP),
        Contender("framewire-one-host", "bench.contenders.framewire_one_host", "sealed memfd, nothing copied", _HTTP),
        Contender("raw-sendall", "bench.contenders.raw", "sendall to recv_into: bytes only, no frame", ("pyarrow",)),
        Contender(
            "raw-sendfile",
            "bench.contenders.raw",
            "sendfile to recv_into: bytes only",
            ("pyarrow",),
            (("sendfile", True),),
        ),
        Contender("flight", "bench.contenders.flight", "pyarrow Flight (gRPC)"),
        Contender("user-written", "bench.contenders.user_written", "Starlette streaming IPC, httpx, Polars", _USER),
        Contender("parquet-http", "bench.contenders.parquet_http", "a Parquet file over HTTP, httpx, Polars", _USER),
        Contender(
            "mcp-sd",
            "bench.contenders.mcp_sd",
            "the reference implementation: JSON rows",
            ("mcp-sd", "mcp", "starlette", "uvicorn", "httpx", "polars"),
            peer=True,
            exact=False,
            max_rows=100_000,
        ),
        Contender("vgi-rpc", "bench.contenders.vgi", "vgi-rpc over HTTP and shared memory", ("vgi-rpc",)),
    )
}
"""In the order of the tables."""


def interpreter_of(least: str) -> str | None:
    """Path of a Python of version ``least`` or later (``"3.13"``) on this machine, or None."""
    major, minor = map(int, least.split("."))
    if sys.version_info >= (major, minor):
        return sys.executable
    return next((p for m in range(minor, minor + 4) if (p := shutil.which(f"python{major}.{m}"))), None)


def versions(contender: Contender) -> dict[str, str]:
    """Versions of the contender's packages and of its Python."""
    code = (
        "import json, platform, sys\nfrom importlib.metadata import PackageNotFoundError, version\nfound = {}\n"
        "from bench.worker import add_site\nadd_site()\n"
        "for name in sys.argv[1:]:\n    try: found[name] = version(name)\n    except PackageNotFoundError: pass\n"
        "print(json.dumps({'python': platform.python_version(), **found}))"
    )
    command = [contender.python(), "-c", code, *contender.packages]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment())
    import json

    return dict(json.loads(done.stdout))


def environment() -> dict[str, str]:
    """Variables of every child process: where the peer's environment finds Polars, and no proxies or foreign settings."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("FRAMEWIRE_")}
    site = str(Path(pa.__file__).parents[1])
    return kept | {"BENCH_SITE": site, "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
