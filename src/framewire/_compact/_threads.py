"""Work on the chunks of one column, on every processor where it is much: numpy lets go of the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
S = TypeVar("S")

_MUCH_ROWS: Final = 1 << 20
_MAX_THREADS: Final = 4


def in_threads(function: Callable[[T], S], chunks: Sequence[T], *, rows: int) -> list[S]:
    """``function`` of each chunk, in their order; the first exception of any is raised."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(processors, _MAX_THREADS, len(chunks))
    if threads < 2 or rows < _MUCH_ROWS:
        return list(map(function, chunks))
    with ThreadPoolExecutor(threads, thread_name_prefix="framewire-compact") as pool:
        return list(pool.map(function, chunks))
