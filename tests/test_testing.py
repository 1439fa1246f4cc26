"""The strategies can be imported without Hypothesis, and say so when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings

from framewire import testing

ONE = settings(max_examples=1, database=None)


def test_importing_imports_neither_pytest_nor_hypothesis() -> None:
    code = "import framewire.testing, sys; sys.exit(not {'pytest', 'hypothesis'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_hypothesis_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert testing.kinds_of(pa.int8()) == {"int8"}
    asks: list[Callable[[], object]] = [testing.arrow_types, testing.schemas, testing.tables]
    asks.append(lambda: testing.arrays(pa.int8(), 1))
    for ask in asks:
        with pytest.raises(ImportError, match="pip install hypothesis"):
            ask()


def test_the_guard_notices_a_kind_that_is_never_drawn() -> None:
    with pytest.raises(KeyError, match="no such kind"):
        testing.check_tables(lambda table: None, kinds={"int8", "no such kind"}, settings=ONE)


def test_a_kind_that_chance_left_out_is_drawn_on_purpose() -> None:
    seen: set[str] = set()
    testing.check_tables(
        lambda table: seen.update(*(testing.kinds_of(kind) for kind in table.schema.types)), settings=ONE, max_columns=1
    )
    assert seen == testing.WIRE_KINDS


def test_kinds() -> None:
    kind = pa.struct(
        [("a", pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.string_view()))), ("b", pa.timestamp("s", "UTC"))]
    )
    assert testing.kinds_of(kind) == {"struct", "map", "string", "dictionary", "string_view", "zoned timestamp"}


def test_exact_values_tell_apart_what_equality_does_not() -> None:
    assert testing.exact_values(pa.array([0.0])) != testing.exact_values(pa.array([-0.0]))
    assert testing.exact_values(pa.array([float("nan")])) == testing.exact_values(pa.array([float("nan")]))
    assert testing.exact_values(pa.array([1 << 62]).view(pa.timestamp("us"))) == [1 << 62]


def test_the_type_table_of_the_docs_is_the_one_that_is_measured() -> None:
    """Generate it anew between the markers: python -m tests.type_table."""
    page = (Path(__file__).parent.parent / "docs/reference/types.md").read_text()
    shown = page.partition("<!-- measured: begin -->\n\n")[2].partition("\n<!-- measured: end -->")[0]
    command = [sys.executable, "-W", "error", "-m", "tests.type_table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert printed.splitlines() == shown.splitlines()


def test_the_type_table_needs_no_hypothesis_and_says_what_is_not_installed() -> None:
    code = (
        "import sys\n"
        "sys.modules['hypothesis'] = None\n"
        "from tests.type_table import _measure\n"
        "_measure._is_installed = lambda name: False\n"
        "print(_measure.type_table())\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "pandas is not installed." in printed
    assert "duckdb is not installed." in printed
    assert "| `int8` | exact `int8` |" in printed
