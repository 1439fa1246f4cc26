from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framewire.host import registry

ORIGIN = "http://127.0.0.1:4321"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "framewire"


def register(folder: Path, origin: str = ORIGIN) -> registry.Registration:
    entry = registry.register(origin, folder=str(folder))
    assert entry is not None
    return entry


def lookup(folder: Path, origin: str = ORIGIN) -> registry.Registration | None:
    return registry.lookup(origin, folder=str(folder))


def test_an_entry_is_found_proves_itself_and_goes(folder: Path) -> None:
    entry = register(folder)
    assert lookup(folder) == entry
    assert list(registry.entries(folder=str(folder))) == [entry]
    assert lookup(folder, "http://127.0.0.1:4322") is None
    challenge = registry.new_challenge()
    assert registry.is_challenge(challenge)
    assert entry.accepts(challenge, entry.prove(challenge))
    assert not entry.accepts(registry.new_challenge(), entry.prove(challenge))
    assert not entry.accepts(challenge, "é")
    assert entry.nonce not in repr(entry)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [p.stat().st_mode & 0o777 for p in folder.iterdir()] == [0o600]
    registry.unregister(entry, folder=str(folder))
    assert lookup(folder) is None


def test_entries_of_dead_processes_are_not_believed_and_are_swept(folder: Path) -> None:
    code = f"from framewire.host import registry; import os; registry.register({ORIGIN!r}, folder={str(folder)!r}); os._exit(9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(folder.iterdir())) == 1
    assert lookup(folder) is None
    register(folder, "http://127.0.0.1:1")
    assert [e.origin for e in registry.entries(folder=str(folder))] == ["http://127.0.0.1:1"]
    assert len(list(folder.iterdir())) == 1


def test_a_reused_process_id_is_not_believed(folder: Path) -> None:
    register(folder)
    (path,) = folder.iterdir()
    raw = json.loads(path.read_text())
    path.write_text(json.dumps(raw | {"started": raw["started"] + 1}))
    assert lookup(folder) is None


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}", "[1]", '{"origin": "x"', '{"origin": "x", "pid": 1, "started": 1, "nonce": "zz"}'),
        '{"origin": "x", "pid": 1e400, "started": 1, "nonce": "00"}',
        json.dumps({"origin": ORIGIN, "pid": 10**30, "started": 1, "nonce": "00"}),
    ],
)
def test_a_damaged_entry_is_none(folder: Path, content: str) -> None:
    register(folder)
    (path,) = folder.iterdir()
    path.write_text(content)
    assert lookup(folder) is None
    register(folder)


def test_a_file_that_others_could_have_written_is_not_used(folder: Path, tmp_path: Path) -> None:
    register(folder)
    (path,) = folder.iterdir()
    path.chmod(0o644)
    assert lookup(folder) is None
    path.chmod(0o600)
    folder.chmod(0o770)
    assert lookup(folder) is None
    assert registry.register(ORIGIN, folder=str(folder)) is None
    folder.chmod(0o700)
    target = tmp_path / "elsewhere.json"
    os.replace(path, target)
    path.symlink_to(target)
    assert lookup(folder) is None


def test_a_folder_that_is_a_link_is_not_used(folder: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    folder.symlink_to(real)
    assert registry.register(ORIGIN, folder=str(folder)) is None


# --- an entry is read once per version of its file ----------------------------------------------------------------------


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files written now count as old, so that they are remembered."""
    monkeypatch.setattr(registry, "_SETTLED_NS", -(1 << 62))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of entries that were opened."""
    opened: list[str] = []
    really = os.open

    def counting(path: Any, *args: Any, **keywords: Any) -> int:
        if str(path).endswith(".json"):
            opened.append(str(path))
        return really(path, *args, **keywords)

    monkeypatch.setattr(os, "open", counting)
    return opened


@pytest.mark.usefixtures("settled")
def test_an_entry_that_did_not_change_is_read_once(folder: Path, reads: list[str]) -> None:
    entry = register(folder)
    assert [lookup(folder) for _ in range(5)] == [entry] * 5
    assert len(reads) == 1


def test_a_file_that_changed_a_moment_ago_is_read_again(folder: Path, reads: list[str]) -> None:
    # Rewritten in place within one tick of the file system's clock, with the same size: nothing of its status differs.
    entry = register(folder)
    (path,) = folder.iterdir()
    for nonce in ("00" * 32, "11" * 32):
        path.write_text(path.read_text().replace(entry.nonce, nonce))
        entry = replace(entry, nonce=nonce)
        assert lookup(folder) == entry
    assert len(reads) == 2


Change = Callable[[Path, Path], object]


def _becomes(make: Callable[[Path, Path], object]) -> Change:
    def change(path: Path, other: Path) -> None:
        path.unlink()
        make(path, other)

    return change


CHANGES: dict[str, Change] = {
    "rewritten in place": lambda path, other: path.write_text(other.read_text()),
    "replaced by a rename": lambda path, other: os.replace(other, path),
    "a symbolic link": _becomes(Path.symlink_to),
    "deleted": _becomes(lambda path, other: None),
    "readable by others": lambda path, other: path.chmod(0o644),
    "writable by a group": lambda path, other: path.chmod(0o620),
    "cut short": lambda path, other: os.truncate(path, 10),
    "a folder": _becomes(lambda path, other: os.makedirs(path)),
    "a pipe": _becomes(lambda path, other: os.mkfifo(path, 0o600)),
    "another user's": lambda path, other: os.chown(path, os.geteuid() + 1, -1),
}


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_change_of_a_remembered_file_is_noticed(folder: Path, tmp_path: Path, change: Change) -> None:
    if change is CHANGES["another user's"] and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    entry = register(folder)
    (path,) = folder.iterdir()
    other = tmp_path / "other.json"
    other.write_text(path.read_text().replace(entry.nonce, "00" * 32))
    other.chmod(0o600)
    assert lookup(folder) == entry
    before = path.lstat().st_ctime_ns
    while os.stat(tmp_path).st_ctime_ns == before:  # the change comes in a later tick than the file
        os.utime(tmp_path)
    change(path, other)
    kept = change in (CHANGES["rewritten in place"], CHANGES["replaced by a rename"])
    assert lookup(folder) == (replace(entry, nonce="00" * 32) if kept else None)
    assert lookup(folder) == (replace(entry, nonce="00" * 32) if kept else None)


@pytest.mark.usefixtures("settled")
def test_what_surrounds_a_remembered_file_is_checked_every_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = register(folder)
    assert lookup(folder) == entry
    folder.chmod(0o770)
    assert lookup(folder) is None
    folder.chmod(0o700)
    assert lookup(folder) == entry
    with monkeypatch.context() as patched:
        patched.setattr(registry, "_started", lambda pid: entry.started + 1)
        assert lookup(folder) is None
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        assert lookup(folder) is None
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(folder.with_name("moved"))
    assert lookup(folder) is None


@pytest.mark.usefixtures("settled")
def test_the_memory_of_entries_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REMEMBERED", {})
    monkeypatch.setattr(registry, "_MAX_REMEMBERED", 3)
    for port in range(1, 9):
        assert lookup(folder, register(folder, f"http://127.0.0.1:{port}").origin) is not None
        assert len(registry._REMEMBERED) <= 3


def test_only_challenges_are_signed() -> None:
    for text in ("", "a" * 63, "A" * 64, "g" * 64, "0" * 65):
        assert not registry.is_challenge(text)


def test_the_folder_follows_from_the_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entry = registry.register(ORIGIN)
    assert entry is not None
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        assert registry.lookup(ORIGIN) == entry
    finally:
        registry.unregister(entry)
