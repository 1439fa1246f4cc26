"""Sending an answer: slices with back-pressure, under a lease where the handle is of limited use."""

from __future__ import annotations

import mmap
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar, checkpoint

from framewire import wire
from framewire.serve._answer import Answer
from framewire.store import Hold

T = TypeVar("T")
Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_WORKERS: Final = 4
"""Selections and encodings made at once, in threads beside those of the SDK's sync tools."""
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("framewire.serve")
_END: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run blocking work off the loop, under a limiter of this loop's own."""
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_WORKERS)
        _LIMITER.set(limiter)
    return await anyio.to_thread.run_sync(function, *args, limiter=limiter)


async def send_answer(made: Answer, send: Send, *, head: bool, cold: bool) -> None:
    """Send ``made``; without its body for a ``HEAD``.

    Args:
        made: The answer.
        send: ASGI's send; it waits while the client is slower than the server.
        head: Whether only the headers are wanted.
        cold: Whether the bytes may still be on disk.
    """
    await send(_start(made))
    if not head:
        for view in made.slices():
            if cold:
                await in_thread(_touch, view)
            await send({"type": "http.response.body", "body": view, "more_body": True})
    await send(_END)


async def send_leased(
    made: Answer, hold: Hold, receive: Receive, send: Send, *, cold: bool, acknowledges: bool
) -> None:
    """Send ``made`` under a lease.

    A client that acknowledges counts its use itself. For another, the use counts when the last slice is handed over and it
    has not gone away: a server cannot see more of a delivery than that.

    Raises:
        LeasedError, SpentError: The lease lapsed on the way and its use is gone; the transfer breaks.
    """
    gone = anyio.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await send(_start(made, (wire.H_LEASE, hold.lease)))
        waiting: memoryview | None = None
        for view in made.slices():
            if waiting is not None:
                await _send_slice(waiting, hold, send, gone, cold=cold)
            waiting = view
        await checkpoint()
        if not acknowledges and not gone.is_set():
            hold.finish()
        if waiting is not None:
            await _send_slice(waiting, hold, send, gone, cold=cold)
        if not gone.is_set():
            await send(_END)
        group.cancel_scope.cancel()


async def _send_slice(view: memoryview, hold: Hold, send: Send, gone: anyio.Event, *, cold: bool) -> None:
    if gone.is_set():
        return
    hold.touch()
    if cold:
        await in_thread(_touch, view)
    await send({"type": "http.response.body", "body": view, "more_body": True})
    # Without this turn of the loop a disconnect is not seen while the socket takes all that it is given.
    await checkpoint()


def _touch(view: memoryview) -> None:
    """Read one byte of each page, so that a page that is still on disk is waited for here and not on the loop."""
    bytes(view[:: mmap.PAGESIZE])


def _start(made: Answer, *more: tuple[str, str]) -> Message:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in [*made.headers.items(), *more]]
    headers.append((b"content-length", str(made.encoded.nbytes).encode()))
    return {"type": "http.response.start", "status": made.status, "headers": headers}
