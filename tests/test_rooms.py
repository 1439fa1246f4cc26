"""Libraries stay in their rooms, inside functions too.

Ruff's TID253 bans the libraries at module level and lets type-only imports be, but does not look into functions. This
reads the same lists from pyproject.toml, so there is one place to change.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LINT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
BANNED = set(LINT["flake8-tidy-imports"]["banned-module-level-imports"])
ROOMS = [pattern for pattern, rules in LINT["per-file-ignores"].items() if "TID253" in rules]


def _function_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from ((node.lineno, alias.name) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield node.lineno, node.module


def _strays(path: str, source: str) -> list[str]:
    if any(fnmatch(path, pattern) for pattern in ROOMS):
        return []
    found = _function_imports(ast.parse(source))
    return [f"{path}:{line} imports {name}" for line, name in found if name.partition(".")[0] in BANNED]


def test_no_library_is_imported_outside_its_room() -> None:
    files = sorted((ROOT / "src").rglob("*.py"))
    assert files, "no source was found, so nothing was checked"
    assert len(BANNED) == 4
    assert ROOMS
    assert [stray for file in files for stray in _strays(str(file.relative_to(ROOT)), file.read_text())] == []


def test_an_import_inside_a_function_is_found() -> None:
    source = "def f():\n    from starlette.routing import Route\n    import httpx.x\n"
    assert len(_strays("src/framewire/join.py", source)) == 2
    assert _strays("src/framewire/serve/_app.py", source) == []
