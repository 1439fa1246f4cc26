from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
    "content", ["", "{}", "[1]", '{"origin": "x"', '{"origin": "x", "pid": 1, "started": 1, "nonce": "zz"}']
)
def test_a_damaged_entry_is_none(folder: Path, content: str) -> None:
    register(folder)
    (path,) = folder.iterdir()
    path.write_text(content)
    assert lookup(folder) is None
    register(folder)


def test_what_others_could_have_written_is_not_used(folder: Path, tmp_path: Path) -> None:
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
