"""A child process: calls functions that its parent names, one JSON line each way.

``{"call": "bench.sides:fetch", "with": {...}}`` on stdin gives ``{"result": ...}`` or ``{"error": ...}`` on stdout. The
first argument of every function is a dict that lives as long as the process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

from bench import memory


def add_site() -> None:
    """Let an environment that has neither find Polars and pyarrow in framewire's, after its own packages."""
    site = os.environ.get("BENCH_SITE")
    if site and site not in sys.path:
        sys.path.append(site)


def main() -> None:
    """Answer until stdin ends."""
    add_site()
    memory.die_first()
    # Whatever prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    state: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            module, _, name = request["call"].partition(":")
            reply = {"result": getattr(importlib.import_module(module), name)(state, **request["with"])}
        except Exception:
            reply = {"error": traceback.format_exc()}
        answers.write(json.dumps(reply) + "\n")
    if hasattr(state.get("server"), "close"):
        state["server"].close()
    # Threads of servers and gRPC may not end by themselves.
    os._exit(0)


if __name__ == "__main__":
    main()
