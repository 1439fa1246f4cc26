"""Worker threads for conversion, its own few: it never waits behind the SDK's sync tools, nor they behind it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("framewire_conversion")
"""One limiter for each event loop: a limiter belongs to the loop that it was made on."""


async def convert(work: Callable[..., T], /, *args: Any, **keywords: Any) -> T:
    """Run ``work`` off the event loop: converting, encoding and publishing of one table."""
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(max(2, os.cpu_count() or 1))
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(partial(work, *args, **keywords), limiter=limiter)
