"""Both tools as a user of framewire writes them; started once as the resource server and once as the consumer's."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

from bench.rows import make_rows
from framewire import S2SPServer

server = S2SPServer("bench")
ROWS = make_rows(int(sys.argv[1]))


@server.sd_resource_tool()
def measurements() -> list[dict[str, Any]]:
    """Every measurement."""
    return ROWS


@server.sd_consumer_tool()
def summary(rows: pl.DataFrame) -> str:
    """How many rows, and the sum of their ids."""
    return f"{rows.height} {rows['id'].sum()}"


if __name__ == "__main__":
    server.run()
