"""A data plane in a process of its own, told what to do by JSON lines on stdin; answers are JSON lines on stdout."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from typing import Any

import numpy as np
import pyarrow as pa

from framewire.plane import DataPlane
from framewire.serve import _uvicorn

_LOOPS: list[asyncio.AbstractEventLoop] = []


def table(rows: int, seed: int) -> pa.Table:
    """Two columns of 8 bytes that follow from the seed: a frame with other values is a wrong one."""
    numbers = np.arange(rows, dtype=np.int64)
    return pa.table({"n": numbers * 3 + seed, "x": (numbers + seed) / 7})


def _spy() -> None:
    original = _uvicorn.DrainingServer.startup

    async def startup(self: Any, sockets: Any = None) -> None:
        _LOOPS.append(asyncio.get_running_loop())
        await original(self, sockets)

    _uvicorn.DrainingServer.startup = startup  # type: ignore[method-assign]


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _count(plane: DataPlane) -> dict[str, Any]:
    """Cheap to poll."""
    return {"tasks": len(asyncio.all_tasks(_LOOPS[0])), "readers": plane.stats().readers}


def _measure(plane: DataPlane) -> dict[str, Any]:
    gc.collect()
    pa.default_memory_pool().release_unused()
    stats = plane.stats()
    return {
        **_count(plane),
        "rss": resident_bytes(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "bodies": stats.bodies,
        "held": stats.held_bytes,
        "reserved": stats.reserved_bytes,
        "spilled": stats.spilled_bytes,
    }


def main() -> None:
    _spy()
    with DataPlane() as plane:
        print(json.dumps({"ready": plane.base_url}), flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            answer: dict[str, Any]
            if request["do"] == "publish":
                made = table(request["rows"], request["seed"])
                handle = plane.publish(made, max_uses=request.get("max_uses"))
                del made
                answer = {"url": handle.resource_url, "nbytes": handle.nbytes}
            elif request["do"] == "revoke":
                plane.revoke(request["url"])
                answer = {}
            elif request["do"] == "count":
                answer = _count(plane)
            else:
                answer = _measure(plane)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
