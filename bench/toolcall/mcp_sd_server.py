"""Both tools as a user of the reference writes them, in that package's environment."""

from __future__ import annotations

import sys
from typing import Any

from bench.worker import add_site

add_site()

import polars as pl  # noqa: E402  (found through add_site)
from mcp_sd import S2SPServer  # noqa: E402

from bench.rows import make_rows  # noqa: E402

server = S2SPServer("bench")
ROWS = make_rows(int(sys.argv[1]))


@server.sd_resource_tool()  # type: ignore[untyped-decorator]
async def measurements() -> list[dict[str, Any]]:
    """Every measurement."""
    return ROWS


@server.sd_consumer_tool()  # type: ignore[untyped-decorator]
async def summary(rows: list[dict[str, Any]]) -> str:
    """How many rows, and the sum of their ids."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return f"{frame.height} {frame['id'].sum()}"


if __name__ == "__main__":
    server.run()
