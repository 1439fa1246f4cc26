"""Consumer server: a chart and a table of departure delays, from rows that never passed the model.

    python stats_server.py                        # MCP over stdio
    python stats_server.py --http --port 8002     # MCP over streamable HTTP

A tool asks for a frame by annotating a parameter. The agent passes a `resource_url` and the row ids that it chose;
framewire fetches the rows from the other server as Arrow and calls the function with them.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any, Literal

import delay_plot
import polars as pl

from framewire import S2SPServer

OUT = Path(__file__).parent / "out"

server = S2SPServer("stats")


def _require(rows: pl.DataFrame, *columns: str) -> None:
    if missing := [column for column in columns if column not in rows.columns]:
        raise ValueError(f"These rows lack {', '.join(missing)}; they have {', '.join(rows.columns)}.")


def summarise(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """For each value of `by`: flights, cancelled, mean delay in minutes, share of the flown that left over 15 late."""
    delay = pl.col("dep_delay")
    return (
        rows.group_by(by)
        .agg(
            flights=pl.len(),
            cancelled=delay.null_count(),
            mean_delay=delay.mean().round(2),
            late_share=(delay > 15).mean().round(4),
        )
        .sort("flights", by, descending=[True, False])
    )


@server.sd_consumer_tool()
def delay_table(
    rows: pl.DataFrame, by: Literal["carrier", "dest", "origin", "hour", "month"] = "carrier", top: int = 10
) -> str:
    """Departure delays of the given flights for each carrier, destination, origin, scheduled hour or month, as JSON."""
    _require(rows, by, "dep_delay")
    table = summarise(rows, by).head(top)
    return json.dumps({"rows": rows.height, "mean_delay": _mean(rows), "by": by, "table": table.to_dicts()})


@server.sd_consumer_tool()
def delay_chart(rows: pl.DataFrame, title: str = "Departure delays", top: int = 8) -> str:
    """Draw the average departure delay by scheduled hour and carrier; answer with the PNG's path and a table."""
    _require(rows, "carrier", "hour", "dep_delay")
    if rows.is_empty():
        raise ValueError("There are no rows to draw.")
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')[:60] or 'chart'}.png"
    delay_plot.draw(rows, title=title, top=top, path=path)
    table = summarise(rows, "carrier").head(top)
    return json.dumps(
        {"chart": str(path), "rows": rows.height, "mean_delay": _mean(rows), "by": "carrier", "table": table.to_dicts()}
    )


def _mean(rows: pl.DataFrame) -> float | None:
    """Mean departure delay in minutes, of the flights that left."""
    mean: Any = rows["dep_delay"].mean()
    return None if mean is None else round(float(mean), 2)


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="Charts and tables of departure delays over MCP.")
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8002)
    args = parser.parse_args()
    if args.http:
        server.run("streamable-http", host=args.host, port=args.port)
    else:
        server.run()


if __name__ == "__main__":
    main()
