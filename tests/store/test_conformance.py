"""MemoryStore keeps the contract of body stores, wherever its bytes lie."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from framewire.host import memfd
from framewire.store import BodyStore, Disk, Heap, MemoryStore, SealedMemory
from framewire.testing.store import BodyStoreTests
from tests.store import broken_stores


class TestHeap(BodyStoreTests):
    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> BodyStore:
        return MemoryStore(budget_bytes, storage=Heap(), clock=clock)


@pytest.mark.skipif(not memfd.is_available(), reason="sealed memory files are a feature of Linux")
class TestSealedMemory(BodyStoreTests):
    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> BodyStore:
        return MemoryStore(budget_bytes, storage=SealedMemory(), clock=clock)


class TestDisk(BodyStoreTests):
    @pytest.fixture(autouse=True)
    def spill_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> BodyStore:
        return MemoryStore(budget_bytes, storage=Disk(str(self.folder)), clock=clock)

    def leftovers(self) -> list[Path]:
        return list(self.folder.iterdir())


def test_the_suite_notices_every_broken_rule() -> None:
    """Each of the broken stores fails each of the tests that it names."""
    stores = {name: member for name, member in vars(broken_stores).items() if name.startswith("Test")}
    assert len(stores) > 15
    expected = {f"{name}::{test}" for name, store in stores.items() for test in store.noticed_by}
    path = Path(broken_stores.__file__)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rf", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"{path}::{test}" for test in sorted(expected)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=path.parents[2], env=_environment()
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    failed = set(re.findall(r"^FAILED [^:]+::(\w+::\w+)", done.stdout, re.MULTILINE))
    assert failed == expected


def _environment() -> dict[str, str]:
    """Without what pytest-xdist tells its workers, of which the inner run is not one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
