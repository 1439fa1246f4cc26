"""The reference implementation: one JSON request a line on stdin, one JSON answer a line on stdout.

Run by the interpreter of its own environment; imports nothing of framewire's.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp_sd import DirectChannel, S2SPServer

server = S2SPServer("peer")
tables: list[list[dict[str, Any]]] = []


@server.sd_resource_tool()  # type: ignore[untyped-decorator]
async def table(number: int) -> list[dict[str, Any]]:
    """One of the tables that were handed over."""
    return tables[number]


async def publish(rows: list[dict[str, Any]], abstract_domains: str, mode: str = "async") -> Any:
    """Publish rows as a tool of a real server does, and return the tool's reply."""
    tables.append(rows)
    arguments = {"number": len(tables) - 1, "abstract_domains": abstract_domains, "mode": mode}
    result = await server.mcp.call_tool("table", arguments)
    content = result[0] if isinstance(result, tuple) else result
    return json.loads(content[0].text)


OPERATIONS = {
    "publish": publish,
    "fetch_data": DirectChannel.fetch_data,
    "resolve": DirectChannel.resolve,
}


async def main() -> None:
    await server.start()
    print(json.dumps({"ready": server.s2sp_endpoint}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        try:
            answer = {"result": await OPERATIONS[request.pop("operation")](**request)}
        except Exception as exc:
            answer = {"error": type(exc).__name__, "text": str(exc)}
        print(json.dumps(answer), flush=True)
    await server.stop()


asyncio.run(main())
