"""An MCP server of framewire's (stdio): a resource tool and a consumer tool, written as for the reference."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

from framewire import S2SPServer

server = S2SPServer("framewire")
CITIES = ["Zürich", "東京", "Saint-Étienne", "new\nline", "Ålesund"]


@server.sd_resource_tool()
async def cities() -> list[dict[str, Any]]:
    """Five cities with a population, a date and an amount."""
    return [
        {
            "city": city,
            "people": 2**60 + n,
            "day": dt.date(2013, 1, 1 + n),
            "amount": decimal.Decimal("1.25") + n,
            "ratio": float("nan") if n == 2 else n / 3,
            "note": None if n % 2 else "é",
        }
        for n, city in enumerate(CITIES)
    ]


@server.sd_consumer_tool()
async def echo(rows: list[dict[str, Any]]) -> str:
    """The rows, as they came."""
    return json.dumps(rows)


if __name__ == "__main__":
    server.run()
