"""make demo: two MCP servers, a scripted agent between them, a chart, and what crossed which plane.

    python demo.py              # both passes
    python demo.py --only http  # one of them

The agent sees the columns that it asked for and a URL; the rows go from one server to the other. Everything printed is
checked against the data itself: the demo exits with 1 when a row, a number or a chart is off.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import flights_data
import polars as pl
from demo_agent import Agent, Off, check, connected, leaves
from demo_report import Step, Transfer, print_pass, rows_as_json

from framewire import Settings, fetch
from framewire.client import DirectTransport

OVER_HTTP = Settings.from_env(same_host="off")
"""These processes are one user's on one host, where a body is mapped; over HTTP its bytes can be counted and timed."""

STORM = {"origin": "JFK", "month": 7, "day": 10}
"""The day of 2013 with the longest delays at JFK."""
FETCHES = 7
PASS_SECONDS = 180
"""Far above the few seconds that a pass takes, so that a hung server is noticed and a busy machine is not."""


class CountingTransport(DirectTransport):
    """framewire's own transport, which notes how long each response was."""

    nbytes = 0

    def send(self, call: Any) -> Any:
        """Pass the call on and note the length of the body that came back."""
        response = super().send(call)
        self.nbytes = response.body.size
        return response


# --- what must be true ---


def check_reply(reply: dict[str, Any], expected: pl.DataFrame, shown: list[str]) -> None:
    """A resource tool's reply describes `expected` and shows just the columns `shown`."""
    total = reply["total_rows"]
    check(total == expected.height, f"{total} rows were announced, not {expected.height}")
    check(reply["columns"] == expected.columns, f"the columns are {reply['columns']}")
    abstract = reply["abstract"]
    wanted = expected.with_row_index("_row_id").select("_row_id", *shown).head(len(abstract)).to_dicts()
    check(abstract == wanted, "the abstract is not what the data says")
    check(reply["shown_rows"] == len(abstract), "shown_rows is not the number of rows shown")
    check(reply["truncated"] == (len(abstract) < expected.height), "truncated says otherwise")


def check_chart(answer: dict[str, Any], expected: pl.DataFrame, started: float) -> None:
    """The consumer saw exactly `expected`: its counts and means are those of the data, and it drew a new PNG."""
    check(answer["rows"] == expected.height, f"the consumer got {answer['rows']} rows, not {expected.height}")
    flown = [delay for delay in expected["dep_delay"].to_list() if delay is not None]
    check(_close(answer["mean_delay"], flown), "the mean delay is not that of the data")
    for line in answer["table"]:
        delays = expected.filter(carrier=line["carrier"])["dep_delay"].to_list()
        left = [delay for delay in delays if delay is not None]
        check((line["flights"], line["cancelled"]) == (len(delays), len(delays) - len(left)), "flights were miscounted")
        check(_close(line["mean_delay"], left), f"the mean delay of {line['carrier']} is not that of the data")
    chart = Path(answer["chart"])
    check(chart.stat().st_mtime >= started - 1, f"{chart} was not written by this run")
    check(chart.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n", f"{chart} is not a PNG")


def _close(rounded: float, delays: list[int]) -> bool:
    return math.isclose(rounded, sum(delays) / len(delays), abs_tol=0.00501)


def check_body(url: str, expected: pl.DataFrame, row_ids: list[int] | None, transport: CountingTransport) -> None:
    """Fetch the same rows here and compare: every value, every type, every id."""
    frame = pl.DataFrame(pl.from_arrow(fetch(url, row_ids, transport=transport, settings=OVER_HTTP)))
    ids = frame["_row_id"].to_list()
    check(ids == (list(range(expected.height)) if row_ids is None else row_ids), "the row ids are not those asked for")
    body = frame.drop("_row_id")
    check(body.schema == expected.schema, "a column arrived in another type")
    check(body.equals(expected, null_equal=True), "a value arrived altered")


# --- what the agent does ---


async def storm_day(agent: Agent, transport: CountingTransport) -> Step:
    """One airport, one day: read the abstract, choose rows, ask for the chart of these."""
    day = flights_data.load("flights").filter(**STORM)
    started = time.time()
    reply = await agent.call("departures", {**STORM, "abstract_domains": "carrier,hour"})
    check_reply(reply, day, ["carrier", "hour"])
    agent.say(f"departures of JFK on 10 July: {reply['total_rows']} rows; the agent sees carrier and hour")

    abstract = reply["abstract"]
    check(len(abstract) == day.height, "the abstract of a day should be whole")
    flights = [row["carrier"] for row in abstract]
    big = sorted(set(flights), key=lambda carrier: (-flights.count(carrier), carrier))[:4]
    row_ids = [row["_row_id"] for row in abstract if row["carrier"] in big and row["hour"] >= 12]
    agent.say(f"it chooses the {len(row_ids)} after noon of the four largest carriers: {', '.join(big)}")

    answer = await agent.call(
        "delay_chart", {"resource_url": reply["resource_url"], "row_ids": row_ids, "title": "JFK, 10 July 2013"}
    )
    chosen = day.with_row_index("i").filter(pl.col("i").is_in(row_ids)).drop("i")
    check_chart(answer, chosen, started)
    agent.say(f"chart of these {answer['rows']} rows, {answer['mean_delay']} min late on average", answer["chart"])

    check_body(reply["resource_url"], chosen, row_ids, transport)
    return Step("JFK, 10 July: rows chosen", len(row_ids), agent.take(), transport.nbytes, rows_as_json(chosen))


async def whole_year(agent: Agent, transport: CountingTransport) -> tuple[Step, Transfer]:
    """Every departure of the year: one row id is all that the agent looks at."""
    year = flights_data.load("flights")
    started = time.time()
    reply = await agent.call("departures", {"abstract_domains": "_row_id"})
    check_reply(reply, year, [])
    agent.say(f"departures of the whole year: {reply['total_rows']:,} rows; the agent sees row ids only")
    answer = await agent.call("delay_chart", {"resource_url": reply["resource_url"], "title": "New York, all of 2013"})
    check_chart(answer, year, started)
    agent.say(f"chart of all {answer['rows']:,} rows, {answer['mean_delay']} min late on average", answer["chart"])

    mapped = timed(reply["resource_url"], transport, Settings.from_env())
    seconds = timed(reply["resource_url"], transport, OVER_HTTP)
    check_body(reply["resource_url"], year, None, transport)
    step = Step("New York, 2013: all rows", year.height, agent.take(), transport.nbytes, rows_as_json(year))
    return step, Transfer(year.height, transport.nbytes, seconds, mapped)


def timed(url: str, transport: CountingTransport, settings: Settings) -> list[float]:
    """Seconds of each of several fetches of a whole body."""
    seconds = []
    for _ in range(FETCHES):
        begin = time.perf_counter()
        fetch(url, transport=transport, settings=settings)
        seconds.append(time.perf_counter() - begin)
    return seconds


async def run_pass(kind: str) -> None:
    """Start both servers, let the agent work, print the figures."""
    transport = CountingTransport()
    begin = time.perf_counter()
    try:
        async with connected(kind) as agent:
            agent.say(f"flights and stats are up, each in its own process ({time.perf_counter() - begin:.1f} s)")
            steps = [await storm_day(agent, transport)]
            step, transfer = await whole_year(agent, transport)
            print_pass([*steps, step], transfer)
    finally:
        transport.close()


async def run(kinds: list[str]) -> None:
    """All passes, each with a limit on its time."""
    for number, kind in enumerate(kinds, 1):
        name = {"stdio": "stdio", "http": "streamable HTTP"}[kind]
        print(f"\nPass {number} of {len(kinds)}: MCP over {name}", flush=True)
        with anyio.fail_after(PASS_SECONDS):
            await run_pass(kind)


def main() -> int:
    """Run the demo; 0 when everything was as it must be."""
    parser = argparse.ArgumentParser(description="Tables between two MCP servers, past the agent.")
    parser.add_argument("--only", choices=["stdio", "http"], help="one pass instead of both")
    args = parser.parse_args()
    begin = time.perf_counter()
    print("framewire demo: every departure from New York's airports in 2013", flush=True)
    faults: list[str] = []
    try:
        anyio.run(run, [args.only] if args.only else ["stdio", "http"])
    except* Off as group:  # raised inside the clients' task groups
        faults = [str(error) for error in leaves(group)]
    except* TimeoutError:
        faults = [f"a pass took longer than {PASS_SECONDS} s"]
    for fault in faults:
        print(f"\n  OFF  {fault}", file=sys.stderr)
    if not faults:
        print(f"\nAll rows, numbers and charts are exact. {time.perf_counter() - begin:.1f} s in all.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
