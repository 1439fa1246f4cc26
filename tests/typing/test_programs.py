"""mypy (strict) and pyright on what users write, with framewire installed from its wheel.

The programs lie in ``programs/``. A line that both checkers must refuse ends in ``# E:``; every other line must pass.
pyright runs as basedpyright in its ``standard`` mode: pyright's own package downloads node when it first runs.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
Lines = dict[str, set[int]]
Checker = Callable[[Path], list[tuple[str, int, str]]]


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with framewire installed from its wheel, beside the libraries of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    venv.EnvBuilder(with_pip=False).create(folder / "env")
    (site,) = (folder / "env").glob("lib/*/site-packages")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        assert "framewire/py.typed" in wheel.namelist()
        assert not any(name.startswith("tests") for name in wheel.namelist())
        wheel.extractall(site)
    # The editable installation of this environment is left out: its .pth files are not read there.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries))
    return folder / "env" / "bin" / "python"


def run_mypy(interpreter: Path) -> list[tuple[str, int, str]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--output=json", "--no-pretty"]
    command += [f"--python-executable={interpreter}", f"--cache-dir={ROOT / '.mypy_cache' / 'programs'}"]
    command += map(str, sorted(PROGRAMS.glob("*.py")))
    done = subprocess.run(command, cwd=interpreter.parent, capture_output=True, text=True, timeout=600, check=False)
    assert not done.stderr, done.stderr
    found = map(json.loads, done.stdout.splitlines())
    return [(Path(f["file"]).name, f["line"], f["message"]) for f in found if f["severity"] == "error"]


def run_pyright(interpreter: Path) -> list[tuple[str, int, str]]:
    config = interpreter.parent / "pyrightconfig.json"
    config.write_text(json.dumps({"typeCheckingMode": "standard", "include": [str(PROGRAMS)]}))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "-p",
        str(config),
        "--pythonpath",
        str(interpreter),
        "--outputjson",
    ]
    done = subprocess.run(command, cwd=interpreter.parent, capture_output=True, text=True, timeout=600, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(PROGRAMS.glob("*.py"))), done.stderr
    errors = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    return [(Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"]) for d in errors]


def marked() -> Lines:
    lines: Lines = {}
    for path in PROGRAMS.glob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"# E:$", line):
                lines.setdefault(path.name, set()).add(number)
    return lines


@pytest.mark.parametrize("run", [run_mypy, run_pyright])
def test_what_users_write_is_checked(run: Checker, interpreter: Path) -> None:
    errors = run(interpreter)
    wanted = {(name, line) for name, lines in marked().items() for line in lines}
    assert [error for error in errors if error[:2] not in wanted] == []
    assert wanted - {error[:2] for error in errors} == set(), "these mistakes are not found"


def test_the_programs_hold_mistakes_and_none_elsewhere() -> None:
    lines = marked()
    assert set(lines) == {"mistakes.py"}
    assert len(lines["mistakes.py"]) > 30
    assert len(list(PROGRAMS.glob("*.py"))) == 3


@pytest.mark.parametrize("name", ["servers.py", "calls.py"])
def test_what_the_checkers_accept_is_accepted_at_run_time(name: str) -> None:
    assert runpy.run_path(str(PROGRAMS / name))
