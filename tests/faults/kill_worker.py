"""A server that spills every body, and publishes until it is killed. Prints one JSON line per handle."""

from __future__ import annotations

import json
import sys
import threading
from collections import deque

from framewire.handle import Handle
from framewire.plane import DataPlane
from tests.faults.plane_worker import table

KEPT = 30
"""Live handles; older ones are revoked, so that a long run does not fill the disk."""


def main() -> None:
    import faulthandler

    faulthandler.dump_traceback_later(15)
    seeds = iter(range(1 << 40))
    lock = threading.Lock()
    alive: deque[Handle] = deque()

    def publish(plane: DataPlane) -> None:
        while True:
            with lock:
                seed = next(seeds)
            rows = 1000 + 7919 * seed % 60_000
            handle = plane.publish(table(rows, seed))
            with lock:
                print(json.dumps({"url": handle.resource_url, "rows": rows, "seed": seed}), flush=True)
                alive.append(handle)
                old = alive.popleft() if len(alive) > KEPT else None
            if old is not None:
                plane.revoke(old)

    with DataPlane() as plane:
        print(json.dumps({"ready": plane.base_url}), flush=True)
        for _ in range(2):
            threading.Thread(target=publish, args=(plane,), daemon=True).start()
        sys.stdin.read()


if __name__ == "__main__":
    main()
