"""Decodes one bomb after the other; one JSON line each: what refused it, in how long, with how much memory."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa

from framewire.arrow import read
from framewire.errors import S2SPError
from framewire.frame import Form, to_form

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def _status(key: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) << 10


def _reset_peak() -> int:
    """Forget the highest memory so far; returns what is in use now."""
    if _STATUS.exists():
        _CLEAR.write_text("5")
        return _status("VmRSS")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _peak() -> int:
    return _status("VmHWM") if _STATUS.exists() else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _try(body: pa.Buffer, budget: int, allow_compression: bool) -> str:
    try:
        table = read.decode(body, rows=None, max_rows=1 << 31, max_bytes=budget, allow_compression=allow_compression)
        to_form(table, Form.POLARS_FRAME)
    except S2SPError as exc:
        return f"{type(exc).__name__}: {exc}"
    return "accepted"


def main() -> None:
    budget = int(sys.argv[1])
    _try(pa.py_buffer(b""), budget, False)
    for job in json.load(sys.stdin):
        body = pa.py_buffer(Path(job["path"]).read_bytes())
        before = _reset_peak()
        started = time.perf_counter()
        error = _try(body, budget, job["allow_compression"])
        ms = (time.perf_counter() - started) * 1e3
        print(json.dumps({"name": job["name"], "error": error, "ms": ms, "peak_bytes": _peak() - before}))


if __name__ == "__main__":
    main()
