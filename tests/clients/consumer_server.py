"""The consumer server: ``python consumer_server.py (stdio | PORT)``."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

from framewire import S2SPServer

server = S2SPServer("analysis")


@server.sd_consumer_tool()
def summarise(rows: pl.DataFrame) -> dict[str, Any]:
    """Count the rows, add their numbers up, and name the last one's label."""
    return {"rows": rows.height, "sum": int(rows["n"].sum()), "last": rows["label"][-1]}


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
