"""Every write, open, map and seal fails once: an error of ours or a silent way around it, nothing leaked, and it works again."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framewire.client import fetch
from framewire.errors import NoRoomError, S2SPError
from framewire.host import registry
from framewire.plane import DataPlane
from framewire.settings import Settings
from tests.faults.forms import twice, until
from tests.faults.plane_worker import table

ROWS = 60_000
WHOLE = table(ROWS, 11)
NBYTES = 24 * ROWS
CALLS: list[tuple[Any, str]] = [
    (os, "writev"),
    (os, "memfd_create"),
    (os, "open"),
    (os, "dup"),
    (os, "fstat"),
    (os, "posix_fallocate"),
    (os, "ftruncate"),
    (os, "pwrite"),
    (os, "replace"),
    (os, "fdopen"),
    (fcntl, "fcntl"),
    (fcntl, "lockf"),
    (pa, "memory_map"),
    (pa, "allocate_buffer"),
    (tempfile, "TemporaryFile"),
    (tempfile, "mkstemp"),
]
FAILURES = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.EMFILE, "Too many open files"),
]


class FailOnce:
    """Stands in for a call, which fails the n-th time."""

    def __init__(self, call: Any, position: int, error: BaseException) -> None:
        self._call, self._left, self._error = call, position, error
        self.fired = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if self._left == -1:
            self.fired = True
            raise self._error
        return self._call(*args, **kwargs)


@pytest.fixture(params=["memory", "disk"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, runtime: Path) -> Settings:
    budget = 64 << 20 if request.param == "memory" else NBYTES // 2
    return Settings.from_env(memory_budget_bytes=budget, spill_dir=str(tmp_path))


def _descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _publish_and_fetch(plane: DataPlane) -> None:
    """Whole (mapped where it can be), a range, and scattered rows over HTTP."""
    handle = plane.publish(WHOLE)
    try:
        assert fetch(handle.resource_url).drop_columns(["_row_id"]).equals(WHOLE)
        assert fetch(handle.resource_url, ["7-9999"]).num_rows == 9993
        assert fetch(handle.resource_url, [5, 1, 5])["n"].to_pylist() == [26, 14, 26]
    finally:
        plane.revoke(handle)


def _is_empty(plane: DataPlane) -> bool:
    """A transfer that its client gave up on may hold its body for a moment longer."""
    stats = plane.stats()
    return (stats.bodies, stats.held_bytes, stats.reserved_bytes, stats.spilled_bytes) == (0, 0, 0, 0)


@pytest.fixture
def plane(settings: Settings) -> Iterator[DataPlane]:
    with DataPlane(settings) as plane:
        for _ in range(2):  # connections, threads and caches are there before anything is counted
            _publish_and_fetch(plane)
        yield plane


def _fail_each_in_turn(module: Any, name: str, plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Let the first call fail, then the second and so on, until none is left. Returns failures, and errors that came of them."""
    failures = errors = 0
    for error in FAILURES:
        for position in range(12):
            failing = FailOnce(getattr(module, name), position, error)
            with monkeypatch.context() as patch:
                patch.setattr(module, name, failing)
                try:
                    _publish_and_fetch(plane)
                except S2SPError:
                    errors += 1
            until(lambda: _is_empty(plane), f"the room is given back after {name} failed")
            if not failing.fired:
                break
            failures += 1
            _publish_and_fetch(plane)
    return failures, errors


@pytest.mark.parametrize(("module", "name"), CALLS, ids=[f"{m.__name__}.{n}" for m, n in CALLS])
def test_a_call_that_fails_once(module: Any, name: str, plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _descriptors()
    _fail_each_in_turn(module, name, plane, monkeypatch)
    assert _descriptors() <= before


@pytest.mark.faults
def test_every_call_in_turn(plane: DataPlane, monkeypatch: pytest.MonkeyPatch, figure: Callable[[str], None]) -> None:
    before = _descriptors()
    counts = [_fail_each_in_turn(module, name, plane, monkeypatch) for module, name in CALLS]
    assert _descriptors() <= before
    where = "memory" if plane.settings.memory_budget_bytes > NBYTES else "disk"
    figure(
        f"failing calls (bodies in {where}): {sum(f for f, _ in counts)} failures of {len(CALLS)} calls: "
        f"{sum(e for _, e in counts)} errors of ours, the rest went another way; "
        "0 descriptors and 0 bytes of room leaked, every later publish worked"
    )


@pytest.mark.parametrize(("module", "name"), CALLS, ids=[f"{m.__name__}.{n}" for m, n in CALLS])
def test_a_start_during_which_a_call_fails(
    module: Any, name: str, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.from_env(public_url="https://starts.example.org")
    DataPlane(settings).start().stop()
    before = _descriptors()
    for position in range(12):
        failing = FailOnce(getattr(module, name), position, OSError(errno.EMFILE, "Too many open files"))
        plane = DataPlane(settings)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, failing)
            try:
                plane.start()
                plane.stop()
            except S2SPError:
                plane.stop()
        if not failing.fired:
            break
    assert list(registry.entries(folder=str(runtime))) == []
    assert [path for path in runtime.iterdir() if path.suffix not in (".claim", ".json")] == []
    assert _descriptors() <= before
    with DataPlane(Settings.from_env()) as again:
        assert fetch(again.publish(WHOLE).resource_url).num_rows == ROWS


@twice
def test_a_full_disk_is_said_before_there_is_a_handle(
    form: str, tmp_path: Path, runtime: Path, figure: Callable[[str], None]
) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        with DataPlane(Settings.from_env(memory_budget_bytes=1, spill_dir=str(folder))) as plane:
            first = plane.publish(WHOLE)
            for _ in range(3):
                with pytest.raises(NoRoomError, match="spilled to disk: No space left.*FRAMEWIRE_SPILL_DIR"):
                    plane.publish(WHOLE)
            assert plane.stats().bodies == 1
            assert plane.stats().reserved_bytes == 0
            assert fetch(first.resource_url).drop_columns(["_row_id"]).equals(WHOLE)
            plane.revoke(first)
            gc.collect()
            # The kernel has its pages back: the next one fits again.
            assert fetch(plane.publish(WHOLE).resource_url).num_rows == ROWS
            assert list(folder.iterdir()) == []
        figure(
            "full tmpfs as the spill folder: 3 of 3 publishes refused before there was a handle, the one before served"
        )
    finally:
        gc.collect()
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_spill_folder_that_is_none(folder: str, tmp_path: Path, runtime: Path) -> None:
    (tmp_path / "file").write_text("")
    with DataPlane(Settings.from_env(memory_budget_bytes=1, spill_dir=str(tmp_path / folder))) as plane:
        with pytest.raises(NoRoomError, match="FRAMEWIRE_SPILL_DIR"):
            plane.publish(WHOLE)
        assert plane.stats().spilled_bytes == 0
