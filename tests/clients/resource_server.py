"""A resource server: ``python resource_server.py NAME ROWS (stdio | PORT)``. Its one tool is called NAME."""

from __future__ import annotations

import sys

import polars as pl

from framewire import S2SPServer

name, rows = sys.argv[1], int(sys.argv[2])
server = S2SPServer(name)


@server.sd_resource_tool(name)
def table() -> pl.DataFrame:
    """Numbers and their names."""
    return pl.DataFrame({"n": range(rows), "label": [f"{name}-{i}" for i in range(rows)]})


if __name__ == "__main__":
    if sys.argv[3] == "stdio":
        server.run()
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[3]))
