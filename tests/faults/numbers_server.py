"""A stdio MCP server for the fault tests; with ``debug`` it logs all that any library has to say."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

import numpy as np
import polars as pl

from framewire import S2SPServer
from framewire.serve import _response
from framewire.tools import _stdio

# On a loaded machine an orderly end may take longer than the process is given for it after a signal.
if "NUMBERS_LAST_SECONDS" in os.environ:
    setattr(_stdio, "_LAST_SECONDS", float(os.environ["NUMBERS_LAST_SECONDS"]))  # noqa: B010

server = S2SPServer("numbers", int(sys.argv[2]) if sys.argv[2:] else 0)


@server.sd_resource_tool()
def numbers(n: int = 1000) -> pl.DataFrame:
    "Numbers."
    print("a stray print")
    return pl.DataFrame({"n": np.arange(n), "x": np.arange(n) / 7})


@server.sd_resource_tool()
def secrets(how: str = "") -> Any:
    "Rows with a hidden column."
    hidden: list[Any] = [f"CANARY-{i:04d}-IN-A-HIDDEN-CELL" for i in range(100)]
    if how == "mixed":
        hidden[50] = 7
    if how == "object":
        hidden[50] = object()
    return [{"k": i, "hidden": value} for i, value in enumerate(hidden)]


@server.sd_consumer_tool()
def total(rows: pl.DataFrame, column: str = "n") -> str:
    "Adds up a column."
    return str(rows[column].sum())


@server.sd_consumer_tool()
def clumsy(rows: pl.DataFrame) -> str:
    "Raises."
    raise RuntimeError("the tool's own words")


@server.mcp.tool()
def fail_transfers(after: int) -> str:
    "From now on, every answer fails after so many slices."
    original = _response.Response.slices

    def slices(self: Any) -> Any:
        for number, view in enumerate(original(self)):
            if number == after:
                raise RuntimeError("in the middle of a transfer")
            yield view

    _response.Response.slices = slices  # type: ignore[method-assign]
    return "ok"


@server.mcp.tool()
def busy(seconds: float) -> str:
    "Takes its time, in a thread."
    time.sleep(seconds)
    return "ok"


if __name__ == "__main__":
    if sys.argv[1:2] == ["debug"]:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, force=True)
        logging.getLogger("uvicorn").setLevel(logging.DEBUG)
    server.run()
