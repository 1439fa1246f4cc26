"""The Inspector's command line: a process, and so a session, for each call."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

from exchange import SERVERS, exchange


async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
    server = SERVERS[name]
    target = [server["url"]] if "url" in server else [server["command"], *server["args"]]
    pairs = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
    command = [
        os.environ["FRAMEWIRE_INSPECTOR"],
        "--cli",
        *target,
        "--method",
        "tools/call",
        "--tool-name",
        tool,
        *pairs,
    ]
    done = subprocess.run(  # noqa: ASYNC221
        command, capture_output=True, text=True, timeout=120, check=False
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{done.stdout}\n{done.stderr}")


asyncio.run(exchange(call))
