"""The delay chart: flights and average delay over the day, and a map of carrier by hour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before anything draws: a server has no screen

import numpy as np
import polars as pl
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

NAMES = {
    "9E": "Endeavor",
    "AA": "American",
    "AS": "Alaska",
    "B6": "JetBlue",
    "DL": "Delta",
    "EV": "ExpressJet",
    "F9": "Frontier",
    "FL": "AirTran",
    "HA": "Hawaiian",
    "MQ": "Envoy",
    "OO": "SkyWest",
    "UA": "United",
    "US": "US Airways",
    "VX": "Virgin America",
    "WN": "Southwest",
    "YV": "Mesa",
}
INK, GREY, RED = "#22313f", "#c9d1d9", "#c0392b"


def draw(rows: pl.DataFrame, *, title: str, top: int, path: Path) -> None:
    """Draw and write the chart.

    Args:
        rows: One departure each, with `carrier` (text), `hour` (scheduled, 0 to 23) and `dep_delay` (minutes, null when
            cancelled).
        title: Heading of the figure.
        top: Carriers shown, those with the most flights.
        path: Where the PNG goes.
    """
    carriers = rows["carrier"].value_counts().sort("count", "carrier", descending=[True, False])["carrier"].head(top)
    flown = rows.filter(pl.col("dep_delay").is_not_null())
    seen = (rows if flown.is_empty() else flown)["hour"].to_list()
    hours = list(range(min(seen), max(seen) + 1))
    figure = Figure(figsize=(11, 3.6 + 0.36 * len(carriers)), layout="constrained")
    day, heat = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 0.36 * len(carriers) + 0.4))
    _draw_day(day, rows, hours)
    _draw_heat(figure, heat, rows, carriers.to_list(), hours)
    facts = f"{rows.height:,} departures, {rows.height - flown.height:,} cancelled"
    if not flown.is_empty():
        facts += f"; mean delay of the others {sum(flown['dep_delay'].to_list()) / flown.height:.1f} min"
    figure.suptitle(title, x=0.01, ha="left", fontsize=15, fontweight="bold", color=INK)
    day.set_title(facts, loc="left", fontsize=10, color=INK)
    figure.savefig(path, dpi=120)


def _draw_day(ax: Any, rows: pl.DataFrame, hours: list[int]) -> None:
    """Bars: departures for each scheduled hour. Line: their average delay."""
    by_hour = pl.DataFrame({"hour": hours}, schema={"hour": rows.schema["hour"]}).join(
        rows.group_by("hour").agg(flights=pl.len(), delay=pl.col("dep_delay").mean()),
        on="hour",
        how="left",
        maintain_order="left",
    )
    ax.bar(hours, by_hour["flights"].fill_null(0), color=GREY, width=0.8)
    ax.set_ylabel("departures", color="#7f8c8d")
    ax.tick_params(axis="y", colors="#7f8c8d")
    ax.tick_params(axis="x", length=0)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    line = ax.twinx()
    line.plot(hours, by_hour["delay"].to_numpy(), color=RED, marker="o", linewidth=2, markersize=4)
    line.set_ylabel("average delay (min)", color=RED)
    line.tick_params(axis="y", colors=RED)
    line.axhline(0, color=RED, linewidth=0.6, alpha=0.4)
    for side in (ax, line):
        side.spines[["top", "left", "right", "bottom"]].set_visible(False)


def _draw_heat(figure: Any, ax: Any, rows: pl.DataFrame, carriers: list[str], hours: list[int]) -> None:
    """A cell for each carrier and hour, coloured by average delay, the minutes written in it."""
    cells = np.full((len(carriers), len(hours)), np.nan)
    means = rows.group_by("carrier", "hour").agg(pl.col("dep_delay").mean())
    for carrier, hour, delay in means.iter_rows():
        if carrier in carriers and delay is not None:  # then the hour is one of `hours` too
            cells[carriers.index(carrier), hour - hours[0]] = delay
    seen = cells[~np.isnan(cells)]
    high = max(float(np.percentile(seen, 98)) if seen.size else 0.0, 10.0)
    norm = TwoSlopeNorm(0, vmin=-high / 2, vmax=high)
    edges = [hour - 0.5 for hour in [*hours, hours[-1] + 1]]
    image = ax.pcolormesh(
        edges, range(len(carriers) + 1), cells, cmap="RdBu_r", norm=norm, edgecolors="white", linewidth=1
    )
    image.set_array(np.ma.masked_invalid(cells))
    for (y, x), delay in np.ndenumerate(cells):
        if not np.isnan(delay):
            ax.text(
                hours[0] + x,
                y + 0.5,
                f"{round(delay)}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if norm(delay) > 0.8 or norm(delay) < 0.2 else INK,
            )
    ax.set_yticks(np.arange(len(carriers)) + 0.5, [f"{NAMES.get(code, code)} ({code})" for code in carriers])
    ax.invert_yaxis()
    ax.set_xticks(hours, [f"{hour}" for hour in hours])
    ax.set_xlabel("scheduled hour of departure (local time)", color=INK)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    figure.colorbar(image, ax=ax, label="average delay (min)", pad=0.01, aspect=12)
