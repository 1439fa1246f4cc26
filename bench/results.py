"""A measurement as one JSON line, and all of them as tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SECONDS = "seconds"
REQUESTS = "requests/s"
BYTES = "bytes"


@dataclass(frozen=True)
class Record:
    """One contender in one case.

    Attributes:
        suite: Name of the suite.
        contender: Name of the contender.
        case: Dataset or variant.
        mode: ``kept`` or ``dropped`` results, a number of clients, or empty.
        samples: What was measured, in ``unit``, warm-up left out.
        unit: ``seconds``, ``requests/s`` or ``bytes``.
        rows: Of the table moved.
        columns: Of the table moved.
        nbytes: Of the table as an Arrow IPC stream: what GB/s are computed from, for every contender alike.
        client_peak_rss_bytes: Most memory that the consumer's process held.
        server_peak_rss_bytes: The same of the server's.
        versions: Package to version.
        facts: Whatever else a goal needs.
    """

    suite: str
    contender: str
    case: str
    samples: tuple[float, ...]
    unit: str = SECONDS
    mode: str = ""
    rows: int = 0
    columns: int = 0
    nbytes: int = 0
    client_peak_rss_bytes: int = 0
    server_peak_rss_bytes: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def minimum(self) -> float:
        """Least sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """Median sample."""
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        """The sample that least disturbance gave: the shortest time, or the highest rate."""
        return max(self.samples) if self.unit == REQUESTS else self.minimum

    def to_json(self) -> str:
        """One line."""
        values = asdict(self) | {"minimum": self.minimum, "median": self.median}
        if self.unit == SECONDS and self.nbytes and self.median:
            values["gb_per_s"] = round(self.nbytes / self.median / 1e9, 4)
            values["rows_per_s"] = round(self.rows / self.median, 1)
        return json.dumps(values)


class Results:
    """The records of one run."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.skipped: list[tuple[str, str]] = []

    def find(self, suite: str, contender: str, case: str, mode: str = "") -> Record | None:
        """The record of that name, or None where it was not measured."""
        for record in self.records:
            if (record.suite, record.contender, record.case, record.mode) == (suite, contender, case, mode):
                return record
        return None

    def write(self, path: Path) -> None:
        """One JSON line for each record."""
        path.write_text("".join(record.to_json() + "\n" for record in self.records))

    def tables(self) -> Iterator[str]:
        """A table for each suite, as text that is Markdown as well."""
        for suite in dict.fromkeys(record.suite for record in self.records):
            rows = [_row(record) for record in self.records if record.suite == suite]
            yield f"## {suite}\n\n" + table(_HEAD, rows)


_HEAD = ("case", "contender", "mode", "median", "min", "GB/s", "rows/s", "client peak", "server peak")


def _row(record: Record) -> tuple[str, ...]:
    rate = record.unit == SECONDS and record.nbytes > 0
    return (
        record.case,
        record.contender,
        record.mode,
        amount(record.median, record.unit),
        amount(record.minimum, record.unit),
        f"{record.nbytes / record.median / 1e9:.2f}" if rate else "",
        f"{record.rows / record.median:,.0f}" if rate and record.rows else "",
        amount(record.client_peak_rss_bytes, BYTES) if record.client_peak_rss_bytes else "",
        amount(record.server_peak_rss_bytes, BYTES) if record.server_peak_rss_bytes else "",
    )


def amount(value: float, unit: str) -> str:
    """A value with its unit, to three digits."""
    if unit == SECONDS:
        return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit == BYTES:
        return f"{value / (1 << 20):,.1f} MiB"
    return f"{value:,.0f}/s"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in a terminal."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    padded = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines]
    rule = "| " + " | ".join("-" * w for w in widths) + " |"
    return "\n".join([padded[0], rule, *padded[1:]]) + "\n"
