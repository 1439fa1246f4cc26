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
    """One side of a contender. Made in a fresh process, ended with it; before that ``close()`` is called if there is one."""

    def publish(self, table: pa.Table) -> None:
        """Take the table and be ready to serve it."""

    def handles(self, count: int) -> list[str]:
        """What clients pass to ``fetch``: ``count`` of them, each good for one fetch at least."""


class Client(Protocol):
    """The other side. ``fetch`` may be called from several threads at once."""

    def fetch(self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None) -> Any:
        """Fetch into this process: a ``pl.DataFrame`` (a filled buffer in the case of raw sockets)."""


@dataclass(frozen=True)
class Environment:
    """A Python of its own, for contenders that cannot be installed beside framewire.

    Attributes:
        folder: The virtual environment, in this repository.
        setup: The command that makes it.
        variable: Names another Python in its place.
        needs: Least version of Python that its packages accept.
        borrows: Takes Polars and pyarrow from framewire's environment, after its own packages. Only a Python of the same
            version can load them.
    """

    folder: str
    setup: str
    variable: str
    needs: str = "3.11"
    borrows: bool = False

    def python(self) -> str:
        """Its interpreter, whether there or not."""
        return os.environ.get(self.variable, str(ROOT / self.folder / "bin" / "python"))

    def unavailable(self) -> str | None:
        """Why it cannot be used here, or None."""
        if Path(self.python()).exists():
            return None
        if interpreter_of(self.needs) is None:
            return f"it needs Python {self.needs} or later, and this machine has none"
        return f"its environment is missing: {self.setup}"


ENVIRONMENTS = {
    "mcp-sd": Environment(".venv-mcp-sd", "make setup-peer", "FRAMEWIRE_MCP_SD_PYTHON", borrows=True),
    "vgi": Environment(".venv-vgi", "make setup-vgi", "FRAMEWIRE_VGI_PYTHON", needs="3.13"),
}


@dataclass(frozen=True)
class Contender:
    """A row of the tables.

    Attributes:
        name: As ``--contenders`` takes it.
        module: Where ``make_server()`` and ``make_client()`` are.
        what: One line for the reader.
        packages: Distributions whose versions are reported.
        options: Passed to ``make_server`` and ``make_client``.
        environment: Runs in that one of :data:`ENVIRONMENTS`, or in framewire's.
        single_use: Its handles are good for one fetch each.
        exact: Whether the frame has the table's own types.
        max_rows: Rows of a table that it can be asked to move in reasonable time and memory.
    """

    name: str
    module: str
    what: str
    packages: tuple[str, ...] = ("pyarrow", "polars")
    options: tuple[tuple[str, Any], ...] = ()
    environment: str | None = None
    single_use: bool = False
    exact: bool = True
    max_rows: int | None = None

    def python(self) -> str:
        """The interpreter to run it with."""
        return ENVIRONMENTS[self.environment].python() if self.environment else sys.executable

    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        return environment(borrows=self.environment is None or ENVIRONMENTS[self.environment].borrows)

    def unavailable(self) -> str | None:
        """Why it cannot run here, or None."""
        if self.environment:
            return ENVIRONMENTS[self.environment].unavailable()
        check = getattr(importlib.import_module(self.module), "unavailable", None)
        return check() if check else None


_HTTP = ("framewire", "pyarrow", "polars", "uvicorn", "uvloop", "httptools", "xxhash")
_VGI = ("vgi-rpc", "falcon", "waitress", "httpx2", "pyarrow", "polars")
_USER = ("starlette", "uvicorn", "uvloop", "httptools", "httpx", "pyarrow", "polars")

CONTENDERS: dict[str, Contender] = {
    c.name: c
    for c in (
        Contender("framewire", "bench.contenders.framewire_http", "HTTP, trusted peer", _HTTP, (("trusted", True),)),
        Contender("framewire-validated", "bench.contenders.framewire_http", "HTTP, every value checked", _HTTP),
        Contender("framewire-one-host", "bench.contenders.framewire_one_host", "sealed memfd, nothing copied", _HTTP),
        Contender("raw-sendall", "bench.contenders.raw", "sendall to recv_into: bytes only, no frame", ("pyarrow",)),
        Contender(
            "raw-reno",
            "bench.contenders.raw",
            "sendall, not paced where the machine's default is",
            ("pyarrow",),
            (("reno", True),),
        ),
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
            environment="mcp-sd",
            single_use=True,
            exact=False,
            max_rows=100_000,
        ),
        Contender("vgi-rpc", "bench.contenders.vgi", "vgi-rpc over HTTP", _VGI, environment="vgi"),
        Contender(
            "vgi-rpc-shm",
            "bench.contenders.vgi",
            "vgi-rpc, batches through shared memory",
            _VGI,
            (("shm", True),),
            environment="vgi",
        ),
    )
}
"""In the order of the tables."""


def interpreter_of(least: str) -> str | None:
    """Path of a Python of version ``least`` or later (``"3.13"``) on this machine, or None.

    Looked for on the PATH and among pyenv's, and tried: what pyenv has on the PATH fails for versions that are not chosen.
    """
    major, minor = map(int, least.split("."))
    named = (shutil.which(f"python{major}.{m}") for m in range(minor, minor + 4))
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = (sys.executable, *filter(None, named), *map(str, sorted(root.glob(f"versions/{major}.*/bin/python"))))
    code = f"import sys, ensurepip, venv; sys.exit(sys.version_info < ({major}, {minor}))"
    return next((c for c in candidates if subprocess.run([c, "-c", code], capture_output=True).returncode == 0), None)


def versions(contender: Contender) -> dict[str, str]:
    """Versions of the contender's packages and of its Python."""
    code = (
        "import json, platform, sys\nfrom importlib.metadata import PackageNotFoundError, version\nfound = {}\n"
        "from bench.worker import add_site\nadd_site()\n"
        "for name in sys.argv[1:]:\n    try: found[name] = version(name)\n    except PackageNotFoundError: pass\n"
        "print(json.dumps({'python': platform.python_version(), **found}))"
    )
    command = [contender.python(), "-c", code, *contender.packages]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=contender.variables())
    import json

    return dict(json.loads(done.stdout))


def environment(*, borrows: bool = True) -> dict[str, str]:
    """Variables of a child process: no proxies and no settings, and where to borrow Polars and pyarrow if it does."""
    settings = ("FRAMEWIRE_", "VGI_", "BENCH_")
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith(settings)}
    site = {"BENCH_SITE": str(Path(pa.__file__).parents[1])} if borrows else {}
    return kept | site | {"PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
