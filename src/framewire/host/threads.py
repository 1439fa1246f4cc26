"""Worker threads for blocking work, counted per event loop and apart from those that the SDK's sync tools use."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import anyio.to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")


class WorkerThreads:
    """Runs blocking work off the event loop, at most ``size`` calls at once in each loop.

    A capacity limiter belongs to the loop it was made on, so every loop gets its own.

    Args:
        name: Names the limiter.
        size: Threads at once in one event loop.
    """

    def __init__(self, name: str, size: int) -> None:
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar(f"framewire.{name}")
        self._size = size

    @property
    def limiter(self) -> anyio.CapacityLimiter:
        """The limiter of the running event loop."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self._size)
            self._limiter.set(limiter)
        return limiter

    async def run(self, work: Callable[..., T], /, *args: Any, abandon_on_cancel: bool = False, **keywords: Any) -> T:
        """Run ``work`` in a thread and return its result; wait while ``size`` others run.

        Args:
            work: Called with ``args`` and ``keywords``.
            *args: Positional arguments of ``work``.
            abandon_on_cancel: Return at once when cancelled, and let the thread finish by itself.
            **keywords: Keyword arguments of ``work``.
        """
        call = partial(work, *args, **keywords)
        return await anyio.to_thread.run_sync(call, limiter=self.limiter, abandon_on_cancel=abandon_on_cancel)


FETCHING: Final = WorkerThreads("fetch", 32)
"""Fetches: each holds a thread while its body arrives."""
SERVING: Final = WorkerThreads("serve", 4)
"""Selections and encodings that a data plane makes."""
CONVERTING: Final = WorkerThreads("conversion", max(2, os.cpu_count() or 1))
"""Conversion, encoding and publishing of one tool's table."""
