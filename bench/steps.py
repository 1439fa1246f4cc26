"""What the process of the steps suite does: each step of a table's way on its own, between the two ends that the others time."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from bench import datasets

State = dict[str, Any]


def measure(state: State, dataset: str, scale: float, repeats: int) -> list[tuple[str, int, list[float]]]:
    """Seconds of each step.

    Returns:
        Name, bytes that it handles, samples; the first of each is left out.
    """
    taken: list[tuple[str, int, list[float]]] = []

    def step(name: str, nbytes: int, function: Callable[[], Any]) -> Any:
        seconds = []
        result: Any = None
        for _ in range(repeats + 1):
            result = None
            gc.collect()
            start = time.perf_counter()
            result = function()
            seconds.append(time.perf_counter() - start)
        taken.append((name, nbytes, seconds[1:]))
        return result

    table = datasets.load(dataset, scale)
    body = _publish(step, table)
    _receive(step, body)
    return taken


def _publish(step: Callable[..., Any], table: pa.Table) -> pa.Buffer:
    from framewire.arrow import write
    from framewire.arrow.compact import compact
    from framewire.arrow.validate import validate
    from framewire.host import memfd
    from framewire.split import add_row_id

    nbytes = int(table.nbytes)
    step("publish: values looked at", nbytes, lambda: validate(table))
    step("publish: the same by Arrow alone", nbytes, lambda: table.validate(full=True))
    compacted = step("publish: hidden bytes looked for", nbytes, lambda: compact(table))
    numbered = step("publish: _row_id added", 8 * table.num_rows, lambda: add_row_id(compacted))
    parts = step("publish: gather list, aligned", nbytes, lambda: write.collect(numbered))
    size = sum(map(len, parts))
    step("publish: checksum", size, lambda: write.checksum(parts))
    step("publish: written to a sealed file", size, lambda: os.close(memfd.create(parts)))
    body: pa.Buffer = write.gather(parts, size)
    return body


def _receive(step: Callable[..., Any], body: pa.Buffer) -> None:
    from framewire.arrow import read
    from framewire.arrow.validate import validate
    from framewire.client._plan import _check_ids
    from framewire.frame import Form, to_form

    limits: dict[str, Any] = {"max_rows": 1 << 40, "max_bytes": 1 << 40, "rows": None, "validate": False}
    table = step("receive: checked and decoded", body.size, lambda: read.decode(body, **limits))
    step("receive: values looked at (allowed peers)", body.size, lambda: validate(table))
    step("receive: _row_id checked", 8 * table.num_rows, lambda: _check_ids(table, None))
    step("receive: Polars frame", body.size, lambda: to_form(table, Form.POLARS_FRAME))
