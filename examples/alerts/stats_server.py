"""Consumer server: draws a chart of weather alerts from rows that never passed the model.

    python stats_server.py              # stdio
    mcp dev stats_server.py             # in the MCP Inspector

This is the documented example of the reference implementation with only the import changed. `generate_chart`, which
that leaves to the reader, draws with matplotlib into `out/`.
"""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: a server has no screen

import matplotlib.dates as mdates
from matplotlib.figure import Figure

from framewire import S2SPServer

OUT = Path(__file__).parent / "out"
SEVERITIES = {
    "Extreme": "#7a0177",
    "Severe": "#d7301f",
    "Moderate": "#fc8d59",
    "Minor": "#fdcc8a",
    "Unknown": "#bdbdbd",
}

server = S2SPServer("stats-server")


def _draw_counts(ax: Any, rows: list[dict]) -> None:
    """Alerts per event, each bar split by severity."""
    events = [event for event, _ in Counter(row["event"] for row in rows).most_common()][::-1]
    left = [0] * len(events)
    for severity, color in SEVERITIES.items():
        counts = Counter(row["event"] for row in rows if row["severity"] == severity)
        if counts:
            ax.barh(events, [counts[e] for e in events], left=left, color=color, label=severity, height=0.7)
            left = [start + counts[event] for start, event in zip(left, events, strict=True)]
    ax.set_title("Alerts by event and severity", loc="left", fontweight="bold")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False, loc="lower right")


def _draw_timeline(ax: Any, rows: list[dict]) -> None:
    """Each alert from its onset (or when it took effect) to its end (or expiry)."""
    spans = sorted(
        (
            datetime.fromisoformat(row["onset"] or row["effective"]),
            datetime.fromisoformat(row["ends"] or row["expires"]),
            row["event"],
            SEVERITIES.get(row["severity"], "#bdbdbd"),
        )
        for row in rows
    )
    for y, (start, end, event, color) in enumerate(spans):
        ax.barh(y, end - start, left=start, color=color, height=0.7)
        ax.annotate(event, (start, y), xytext=(-4, 0), textcoords="offset points", ha="right", va="center", fontsize=7)
    first, last = spans[0][0], max(span[1] for span in spans)
    ax.set_xlim(first - (last - first) * 0.3, last)
    ax.set_yticks([])
    ax.invert_yaxis()
    ax.xaxis.set_major_locator(mdates.DayLocator())
    ax.xaxis.set_major_formatter(mdates.DateFormatter("%b %-d\n%H:%M UTC"))
    ax.spines["left"].set_visible(False)
    ax.set_title("When they hold", loc="left", fontweight="bold")


def generate_chart(rows: list[dict]) -> str:
    """Draw the rows as a PNG; answer with its path and the counts as JSON."""
    if not rows:
        return json.dumps({"error": "No rows to chart"})
    figure = Figure(figsize=(14, max(4.5, 0.24 * len(rows) + 2)), layout="constrained")
    counts, timeline = figure.subplots(1, 2, width_ratios=(2, 3))
    _draw_counts(counts, rows)
    _draw_timeline(timeline, rows)
    for ax in (counts, timeline):
        ax.spines[["top", "right"]].set_visible(False)
    OUT.mkdir(exist_ok=True)
    path = OUT / "alerts.png"
    figure.savefig(path, dpi=110)
    return json.dumps({"chart": str(path), "alerts": len(rows), "events": Counter(row["event"] for row in rows)})


@server.sd_consumer_tool()
async def draw_chart(rows: list[dict]) -> str:
    """Draw a chart from merged rows (abstract + body)."""
    return generate_chart(rows)


if __name__ == "__main__":
    server.run()
