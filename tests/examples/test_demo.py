"""`make demo` runs to its end, and stops with 1 when something is off."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Load = Callable[[str], ModuleType]
DEMO = Path(__file__).parents[2] / "examples" / "flights" / "demo.py"


def test_the_demo_succeeds_over_both_transports_and_says_what_crossed() -> None:
    run = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, timeout=480)
    assert run.returncode == 0, run.stdout + run.stderr
    for shown in ("336,776", "MB/s", "tokens"):
        assert run.stdout.count(shown) >= 2, f"{shown!r} should be shown for each transport"
    assert "All rows, numbers and charts are exact." in run.stdout
    assert "/s2sp/data/fw1" not in run.stdout + run.stderr, "a token was printed or logged"


def test_a_wrong_answer_stops_it(load: Load, tmp_path: Path) -> None:
    demo = load("flights/demo.py")
    rows = demo.flights_data.load("flights").head(50)
    chart = tmp_path / "chart.png"
    chart.write_bytes(b"\x89PNG\r\n\x1a\n")
    delays = [delay for delay in rows["dep_delay"].to_list() if delay is not None]
    good: dict[str, Any] = {
        "rows": 50,
        "mean_delay": round(sum(delays) / len(delays), 2),
        "table": [{"carrier": "UA", **_line(rows.filter(carrier="UA")["dep_delay"].to_list())}],
        "chart": str(chart),
    }
    started = time.time()
    demo.check_chart(good, rows, started)
    for wrong in (
        {"rows": 49},
        {"mean_delay": good["mean_delay"] + 0.1},
        {"table": [{**good["table"][0], "flights": 1}]},
    ):
        with pytest.raises(demo.Off):
            demo.check_chart(good | wrong, rows, started)
    chart.write_bytes(b"GIF89a")
    with pytest.raises(demo.Off):
        demo.check_chart(good, rows, started)


def test_a_fault_ends_it_with_status_1(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = load("flights/demo.py")

    async def off(kind: str) -> None:
        demo.check(False, f"{kind} is off")

    monkeypatch.setattr(demo, "run_pass", off)
    monkeypatch.setattr(sys, "argv", ["demo.py"])
    assert demo.main() == 1
    assert "stdio is off" in capsys.readouterr().err


def _line(delays: list[int | None]) -> dict[str, Any]:
    left = [delay for delay in delays if delay is not None]
    return {"flights": len(delays), "cancelled": len(delays) - len(left), "mean_delay": round(sum(left) / len(left), 2)}
