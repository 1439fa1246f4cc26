"""An MCP server of the reference (stdio): a resource tool and a consumer tool. Imports nothing of framewire's."""

from __future__ import annotations

import json
from typing import Any

from mcp_sd import S2SPServer

server = S2SPServer("reference")
CITIES = ["Zürich", "東京", "Saint-Étienne", "new\nline", "Ålesund"]


@server.sd_resource_tool()  # type: ignore[untyped-decorator]
async def cities() -> list[dict[str, Any]]:
    """Five cities with a population and places."""
    return [
        {"city": city, "people": 2**40 + n, "places": [{"n": n, "tags": ["a"] * n}], "note": None if n % 2 else "é"}
        for n, city in enumerate(CITIES)
    ]


@server.sd_consumer_tool()  # type: ignore[untyped-decorator]
async def echo(rows: list[dict[str, Any]]) -> str:
    """The rows, as they came."""
    return json.dumps(rows)


server.run()
