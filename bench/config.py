"""How much is measured: the full run, and ``--quick``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Sizes of a run.

    Attributes:
        scale: Of the datasets.
        repeats: Fetches that count, at least 5.
        warmup: Fetches before them.
        warm_fraction: Part of the machine's memory that is touched first.
        load_seconds: Of one sample of requests per second.
        latency_requests: In one run of small fetches.
        rows: Of the ``list[dict]`` suites.
        bulk: Datasets of the bulk suite, or all of them.
        shaped: Datasets of the shaped suite.
    """

    scale: float
    repeats: int
    warmup: int
    warm_fraction: float
    load_seconds: float
    latency_requests: int
    rows: int
    bulk: tuple[str, ...] | None = None
    shaped: tuple[str, ...] = ("lineitem", "flights", "numbers")


FULL = Plan(scale=1.0, repeats=5, warmup=1, warm_fraction=0.5, load_seconds=0.5, latency_requests=1000, rows=400_000)
QUICK = Plan(
    scale=0.05,
    repeats=5,
    warmup=1,
    warm_fraction=0.05,
    load_seconds=0.2,
    latency_requests=200,
    rows=20_000,
    bulk=("lineitem", "numbers"),
    shaped=("lineitem",),
)
