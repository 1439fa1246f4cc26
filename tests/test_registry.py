from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from framewire import registry

ORIGIN = "http://127.0.0.1:4321"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "framewire"


def test_an_entry_is_found_proves_itself_and_goes(folder: Path) -> None:
    entry = registry.register(ORIGIN)
    assert entry is not None
    assert registry.lookup(ORIGIN) == entry
    assert list(registry.entries()) == [entry]
    assert registry.lookup("http://127.0.0.1:4322") is None
    challenge = registry.new_challenge()
    assert registry.is_challenge(challenge)
    assert entry.accepts(challenge, entry.prove(challenge))
    assert not entry.accepts(registry.new_challenge(), entry.prove(challenge))
    assert not entry.accepts(challenge, "é")
    assert entry.nonce not in repr(entry)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [p.stat().st_mode & 0o777 for p in folder.iterdir()] == [0o600]
    registry.unregister(entry)
    assert registry.lookup(ORIGIN) is None


def test_entries_of_dead_processes_are_not_believed_and_are_swept(folder: Path) -> None:
    code = f"from framewire import registry; import os; registry.register({ORIGIN!r}); os._exit(9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(folder.iterdir())) == 1
    assert registry.lookup(ORIGIN) is None
    registry.register("http://127.0.0.1:1")
    assert [e.origin for e in registry.entries()] == ["http://127.0.0.1:1"]
    assert len(list(folder.iterdir())) == 1


def test_a_reused_process_id_is_not_believed(folder: Path) -> None:
    registry.register(ORIGIN)
    (path,) = folder.iterdir()
    raw = json.loads(path.read_text())
    path.write_text(json.dumps(raw | {"started": raw["started"] + 1}))
    assert registry.lookup(ORIGIN) is None


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"origin": "x"', '{"origin": "x", "pid": 1, "started": 1, "nonce": "zz"}']
)
def test_a_damaged_entry_is_none(folder: Path, content: str) -> None:
    registry.register(ORIGIN)
    (path,) = folder.iterdir()
    path.write_text(content)
    assert registry.lookup(ORIGIN) is None
    assert registry.register(ORIGIN) is not None


def test_what_others_could_have_written_is_not_used(folder: Path, tmp_path: Path) -> None:
    registry.register(ORIGIN)
    (path,) = folder.iterdir()
    path.chmod(0o644)
    assert registry.lookup(ORIGIN) is None
    path.chmod(0o600)
    folder.chmod(0o770)
    assert registry.lookup(ORIGIN) is None
    assert registry.register(ORIGIN) is None
    folder.chmod(0o700)
    target = tmp_path / "elsewhere.json"
    os.replace(path, target)
    path.symlink_to(target)
    assert registry.lookup(ORIGIN) is None


def test_a_folder_that_is_a_link_is_not_used(folder: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    folder.symlink_to(real)
    assert registry.register(ORIGIN) is None


def test_only_challenges_are_signed() -> None:
    for text in ("", "a" * 63, "A" * 64, "g" * 64, "0" * 65):
        assert not registry.is_challenge(text)
