"""The two forms of a fault test, and a few things that all of them do."""

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


def until(true: Callable[[], bool], seconds: float, what: str) -> float:
    """Look until ``true`` says so, and say how long that took; a bound on a wait that normally is short."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - started


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
