from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.bombs import BOMBS, BUDGET

ROOT = Path(__file__).parents[2]
WORKER = "tests.faults.bomb_worker"
_MIB = 1 << 20


def test_every_bomb_is_refused_within_the_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is decoded in a process of its own making, where the peak of its memory can be seen."""
    assert len(BOMBS) >= 30
    assert len({bomb.name for bomb in BOMBS}) == len(BOMBS)
    jobs = []
    for number, bomb in enumerate(BOMBS):
        path = tmp_path / str(number)
        path.write_bytes(bomb.build())
        jobs.append({"path": str(path), "name": bomb.name, "allow_compression": bomb.allow_compression})
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", WORKER, str(BUDGET)],
        input=json.dumps(jobs), capture_output=True, text=True, timeout=120, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["name"] for result in results] == [bomb.name for bomb in BOMBS]
    pairs = list(zip(BOMBS, results, strict=True))
    assert [result for _, result in pairs if not result["error"].startswith(("BadBodyError", "TooLargeError"))] == []
    assert [result for bomb, result in pairs if not re.search(bomb.because, result["error"])] == []
    slowest = max(results, key=lambda result: result["ms"])
    largest = max(results, key=lambda result: result["peak_bytes"])
    assert largest["peak_bytes"] <= BUDGET + 64 * _MIB, largest
    with capsys.disabled():
        print(
            f"\nbombs: {len(results)} refused, slowest {slowest['ms']:.1f} ms ({slowest['name']}), "
            f"most memory {largest['peak_bytes'] / _MIB:.0f} MiB ({largest['name']})"
        )
