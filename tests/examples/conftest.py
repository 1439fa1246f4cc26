"""Loads the examples' modules: they are scripts beside each other, not a package, and two have the same name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Load `folder/name.py` of the examples afresh; it can import what lies beside it, as when it is run."""

    def loader(path: str) -> ModuleType:
        file = EXAMPLES / path
        monkeypatch.syspath_prepend(str(file.parent))
        spec = importlib.util.spec_from_file_location(f"example_{file.parent.name}_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loader
