"""Runs every operation on every type in every form, in processes that may die of it."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from framewire.client import fetch
from framewire.frame import Form, to_form
from framewire.plane import DataPlane
from tests.form_table._operations import NAMES, Operation, arrow_operations, pandas_operations, polars_operations
from tests.form_table._samples import samples

OPERATIONS: Final[dict[Form, Callable[[], dict[str, Operation]]]] = {
    Form.POLARS_FRAME: polars_operations,
    Form.ARROW_TABLE: arrow_operations,
    Form.PANDAS_FRAME: pandas_operations,
}
DIED: Final = "the process died"


def measure(form: Form) -> dict[str, dict[str, str]]:
    """For each type the operations that fail in ``form``, with the error's class, or :data:`DIED`."""
    failures: dict[str, dict[str, str]] = {name: {} for name in samples()}
    skip: list[str] = []
    while True:
        command = [sys.executable, "-m", "tests.form_table._measure", form.value, json.dumps(skip)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for name, operation, error in lines:
            if error not in (None, ""):
                failures[name][operation] = error
        if done.returncode == 0:
            return failures
        if not lines or lines[-1][2] is not None:
            raise RuntimeError(done.stderr)
        name, operation, _ = lines[-1]
        failures[name][operation] = DIED
        skip += [f"{one}/{two}" for one, two, _ in lines]


def run(form: Form, skip: set[str]) -> Iterator[tuple[str, str, str | None]]:
    """Each type and operation twice: before it with None, after it with the error's class or an empty text."""
    operations = OPERATIONS[form]()
    with DataPlane() as plane:
        for name, column in samples().items():
            url = plane.publish(pa.table({"x": column, "n": [1, 2, 3]})).resource_url
            frame: Any = to_form(fetch(url), form)
            for operation, function in operations.items():
                if f"{name}/{operation}" in skip:
                    continue
                yield name, operation, None
                error = ""
                try:
                    function(frame)
                except BaseException as exc:  # a panic of Polars is no Exception
                    error = type(exc).__name__
                yield name, operation, error


def form_table() -> str:
    """The table in Markdown: a row for each type, a column for each form; what works is left out."""
    forms = list(OPERATIONS)
    measured = {form: measure(form) for form in forms}
    lines = [
        "| type on the wire | " + " | ".join(f"`{form.value}`" for form in forms) + " |",
        "| --- |" + " --- |" * len(forms),
    ]
    for name in samples():
        cells = [_cell(measured[form][name]) for form in forms]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(failures: dict[str, str]) -> str:
    if not failures:
        return "all"
    died = [name for name, error in failures.items() if error == DIED]
    assert not died, failures
    return "all but " + ", ".join(name for name in NAMES if name in failures)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in run(Form(sys.argv[1]), set(json.loads(sys.argv[2]))):
        print(json.dumps(line), flush=True)
