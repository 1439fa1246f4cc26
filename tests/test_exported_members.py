"""What the package exports, and that importing it imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import framewire
from framewire import errors

HEAVY = {"anyio", "duckdb", "httpx", "matplotlib", "mcp", "numpy", "pandas", "polars", "pyarrow", "pydantic"}
HEAVY |= {"starlette", "uvicorn"}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_imports_are_exported() -> None:
    values = {name: getattr(framewire, name) for name in framewire.__all__}
    included = [
        name
        for name, member in vars(framewire).items()
        if (not name.startswith("_") or name == "__version__")
        and not isinstance(member, ModuleType)
        and getattr(member, "__module__", "framewire").startswith("framewire")
        and name not in ("annotations", "TYPE_CHECKING")
    ]
    assert sorted(framewire.__all__) == sorted(included)
    assert not any(isinstance(value, ModuleType) for value in values.values())


def test_every_error_is_exported() -> None:
    classes = {name for name in errors.__all__ if name.endswith("Error")}
    assert classes <= set(framewire.__all__)
    assert len(classes) > 20


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        framewire.nothing  # type: ignore[attr-defined]  # noqa: B018
    assert "S2SPServer" in dir(framewire)


def test_importing_framewire_imports_no_library() -> None:
    code = "import sys, framewire; framewire.__version__; framewire.S2SPError; print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in run(code).split()}
    assert loaded & HEAVY == set()


def test_importing_the_server_imports_no_optional_package() -> None:
    loaded = {name.partition(".")[0] for name in run("import sys, framewire.server; print(*sys.modules)").split()}
    assert loaded & {"pandas", "duckdb", "matplotlib", "tiktoken", "typer"} == set()
    assert "mcp" in loaded


@pytest.mark.parametrize("first", ["framewire.server", "framewire.consume", "framewire.client"])
def test_functions_are_not_hidden_by_modules_of_their_name(first: str) -> None:
    code = (
        f"import {first}, framewire; from framewire import fetch, resolve; print(type(fetch), type(framewire.resolve))"
    )
    assert run(code).count("'function'") == 2


def test_publishing_and_fetching_polars_imports_no_pandas() -> None:
    """pyarrow imports pandas, where it is installed, in ``pa.table``, ``pa.array`` of numpy and ``to_numpy``: half a second."""
    code = """
import sys
import polars as pl
from framewire import DataPlane, fetch, resolve
with DataPlane() as plane:
    url = plane.publish(pl.DataFrame({"n": [1, None, 3], "s": ["a", "b", "c"]})).resource_url
    fetch(url)
    fetch(url, [2, 0], ["s"])
    resolve(resource_url=url)
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_no_module_bears_the_name_of_a_public_function() -> None:
    """The import system would set the module over the function, whenever it happens to be imported first."""
    rooms = {path.stem for path in Path(framewire.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert {"client", "consume", "table"} <= rooms
    assert rooms & set(framewire.__all__) == set()
    assert [room for room in rooms if room.startswith("_") and not room.startswith("__")] == []
