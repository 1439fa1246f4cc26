"""Resource server: weather alerts, about 30 nested columns per row, of which the agent sees the ones it names.

    python weather_server.py            # stdio
    mcp dev weather_server.py           # in the MCP Inspector

This is the documented example of the reference implementation with only the import changed. Its rows are recorded, so
that it runs without a network: `alerts.json` holds invented alerts in the shape of the US National Weather Service's
public API.
"""

import json
from pathlib import Path
from typing import Any

from framewire import S2SPServer

RECORDED = Path(__file__).parent / "alerts.json"

server = S2SPServer("weather-server")


async def fetch_from_nws(area: str) -> dict[str, Any]:
    """What the API's `/alerts/active?area=CA` would answer: the features with a zone or county in that state."""
    data: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    data["features"] = [
        feature
        for feature in data["features"]
        if any(code.startswith(area.upper()) for code in feature["properties"]["geocode"]["UGC"])
    ]
    return data


@server.sd_resource_tool()
async def get_alerts(area: str) -> list[dict]:
    """Get weather alerts for a US state (two letters: CA, CO, FL, NY, TX) — returns ~30 columns per alert."""
    data = await fetch_from_nws(area)
    return [feature["properties"] for feature in data["features"]]


if __name__ == "__main__":
    server.run()
