"""Fault tests come in two forms of one test: short, in ``make test``, and long, in ``make test-faults``, with its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

_figures: list[str] = []


@pytest.fixture
def figure() -> Callable[[str], None]:
    """Takes one line, printed at the end of the run: what was seen, in how many trials."""
    return _figures.append


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry of this test's own, for it and its processes."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("FRAMEWIRE_RUNTIME_DIR", str(folder))
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _figures:
        terminalreporter.section("what the fault tests saw")
        for line in _figures:
            terminalreporter.write_line(line)
