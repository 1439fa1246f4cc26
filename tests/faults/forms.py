"""The two forms of a fault test, and helpers that they share."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest


def trials(short: int, long: int) -> pytest.MarkDecorator:
    """Parametrises ``trials``: a few in ``make test``, the whole number in ``make test-faults``."""
    return pytest.mark.parametrize(
        "trials", [pytest.param(short, id="short"), pytest.param(long, id="long", marks=pytest.mark.faults)]
    )


twice = pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.faults)])
"""For tests that are as short in both forms: in ``make test-faults`` they give their figures."""


PATIENCE_SECONDS = 120.0
"""Bound on any wait. No wait takes that long, on any machine: it turns a hang into a failure."""


def until(true: Callable[[], bool], what: str) -> float:
    """Poll ``true``, which another process or thread makes come true; returns the seconds that took."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < PATIENCE_SECONDS, f"not within {PATIENCE_SECONDS:g} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - started


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
