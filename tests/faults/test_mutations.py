from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.mutant_worker import HANG_SECONDS, mutant
from tests.faults.seeds import FAMILIES, SEEDS

ROOT = Path(__file__).parents[2]
PARTS = 4
MUTANTS = 100_000 if os.environ.get("FRAMEWIRE_LONG") == "1" else 10_000


def _run(first: int, count: int, journal: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.faults.mutant_worker", str(first), str(count), str(journal)]
    # Rust prints the trace of every panic that is caught and turned into an error.
    env = os.environ | {"RUST_BACKTRACE": "0"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=HANG_SECONDS + count / 20)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_mutant_kills_hangs_or_raises_anything_but_our_errors(
    part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with the checksum of what was sent, none is taken for it."""
    journal = tmp_path / "journal"
    first, last = MUTANTS * part // PARTS, MUTANTS * (part + 1) // PARTS
    outcomes: Counter[str] = Counter()
    deaths: list[str] = []
    foreign: list[str] = []
    tried = wrong = 0
    while first < last:
        done = _run(first, last - first, journal)
        if done.returncode:
            # What came before the mutant that died is tried again without it, so that nothing is left out.
            (number,) = struct.unpack("<q", journal.read_bytes())
            deaths.append(f"{number} ({mutant(number)[0].name}): exit code {done.returncode}: {done.stderr[-300:]}")
            assert len(deaths) < 10, deaths
            done = _run(first, number - first, journal)
            first = number + 1
        else:
            first = last
        result = json.loads(done.stdout)
        tried, wrong = tried + result["tried"], wrong + result["wrong"]
        outcomes.update(result["outcomes"])
        foreign += result["foreign"]
    with capsys.disabled():
        print(
            f"\nmutants: {tried} tried, {len(deaths)} deaths, {len(foreign)} foreign errors, {wrong} wrong; {dict(outcomes)}"
        )
    assert deaths == []
    assert foreign == []
    assert wrong == 0
    assert tried == sum(outcomes.values()) > 0.9 * MUTANTS / PARTS
    # Mutants must get past the scan as well, or the rest would not be tried.
    assert outcomes["accepted"] > 0.02 * tried


def test_the_seeds_are_valid_and_many() -> None:
    assert len(FAMILIES) == 13
    assert len(SEEDS) == 4 * len(FAMILIES)
    assert mutant(7)[1] == mutant(7)[1]
    assert len({mutant(number)[1] for number in range(500)}) > 450
