"""What the process of the publish suite does: one kind of input, one way of taking it."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from bench import datasets
from bench.rows import make_rows

State = dict[str, Any]


def make_input(state: State, kind: str, dataset: str, scale: float, rows: int) -> dict[str, int]:
    """Make the value to publish: ``list[dict]`` of ``rows`` x 5, or ``dataset`` as another kind."""
    if kind == "list[dict]":
        state["input"] = make_rows(rows)
        return {"rows": rows, "columns": 5, "nbytes": 0}
    table = datasets.load(dataset, scale)
    facts = {"rows": table.num_rows, "columns": table.num_columns, "nbytes": datasets.stream_bytes(table)}
    state["input"] = _as_kind(table, kind)
    return facts


def _as_kind(table: pa.Table, kind: str) -> Any:
    import polars as pl

    if kind.startswith("pa.Table"):
        return table
    frame = pl.from_arrow(table, rechunk=False)
    assert isinstance(frame, pl.DataFrame)
    if kind == "pl.DataFrame":
        return frame
    return frame.to_pandas(use_pyarrow_extension_array=True)


def measure(state: State, way: str, repeats: int, warmup: int, keep: bool) -> list[float]:
    """Seconds of each publish.

    Args:
        state: Holds the input.
        way: ``publish`` on a data plane, ``pa.array`` of the rows, or an IPC stream written to a ``memfd``.
        repeats: Samples.
        warmup: Runs before them.
        keep: Keep every result, or drop it before the next run.
    """
    value, seconds, kept = state["input"], [], []
    with _way(way) as take:
        for _ in range(repeats + warmup):
            gc.collect()
            start = time.perf_counter()
            release = take(value)
            seconds.append(time.perf_counter() - start)
            if keep:
                kept.append(release)
            else:
                release()
        for release in kept:
            release()
    return seconds[warmup:]


Take = Callable[[Any], Callable[[], None]]


def _way(way: str) -> AbstractContextManager[Take]:
    if way == "publish":
        return _plane()
    return nullcontext({"pa.array": _array, "memfd": _memfd}[way])


@contextmanager
def _plane() -> Iterator[Take]:
    """A data plane with room for every result that is kept."""
    from framewire import DataPlane, Settings

    with DataPlane(Settings(memory_budget_bytes=1 << 44)) as plane:

        def take(value: Any) -> Callable[[], None]:
            handle = plane.publish(value)
            return lambda: plane.revoke(handle)

        yield take


def _array(rows: Any) -> Callable[[], None]:
    made = [pa.array(rows)]
    return made.clear


def _memfd(table: pa.Table) -> Callable[[], None]:
    fd = os.memfd_create("bench-publish")
    with pa.OSFile(f"/proc/self/fd/{fd}", "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return lambda: os.close(fd)
