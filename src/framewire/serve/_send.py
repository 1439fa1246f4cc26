"""Sending a response: slices with back-pressure, under a lease where the handle has limited uses."""

from __future__ import annotations

import mmap
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from framewire import wire
from framewire.host.threads import SERVING
from framewire.serve._request import Message, Receive, Send
from framewire.serve._response import Response
from framewire.store import ActiveLease

_END: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


async def send_response(response: Response, send: Send, *, head: bool, cold: bool) -> None:
    """Send ``response``; without its body for a ``HEAD``.

    Args:
        response: Status, headers and bytes.
        send: ASGI's send; it waits while the client is slower than the server.
        head: Send the headers only.
        cold: Whether the bytes may still be on disk.
    """
    await send(_start(response))
    if not head:
        for view in response.slices():
            if cold:
                await SERVING.run(_touch, view)
            await send({"type": "http.response.body", "body": view, "more_body": True})
    await send(_END)


async def send_leased(response: Response, lease: ActiveLease, receive: Receive, send: Send, *, cold: bool) -> None:
    """Send ``response`` under a lease.

    A client that reads Arrow acknowledges, and so counts its use itself. For a JSON client the use counts once the last slice is
    handed to the transport and it has not disconnected: a server cannot see more of a delivery than that.

    Raises:
        LeasedError, SpentError: The lease lapsed during the transfer and another took its use; the transfer breaks.
    """
    acknowledges = response.headers["Content-Type"] == wire.ARROW_STREAM
    gone = anyio.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await send(_start(response, (wire.H_LEASE, lease.id)))
        waiting: memoryview | None = None
        for view in response.slices():
            if waiting is not None:
                await _send_slice(waiting, lease, send, gone, cold=cold)
            waiting = view
        await checkpoint()
        if not acknowledges and not gone.is_set():
            lease.finish()
        if waiting is not None:
            await _send_slice(waiting, lease, send, gone, cold=cold)
        if not gone.is_set():
            await send(_END)
        group.cancel_scope.cancel()


async def _send_slice(view: memoryview, lease: ActiveLease, send: Send, gone: anyio.Event, *, cold: bool) -> None:
    if gone.is_set():
        return
    lease.touch()
    if cold:
        await SERVING.run(_touch, view)
    await send({"type": "http.response.body", "body": view, "more_body": True})
    # Without this turn of the loop a disconnect goes unseen while the socket accepts everything.
    await checkpoint()


def _touch(view: memoryview) -> None:
    """Read one byte of each page, so that this thread waits for pages that are still on disk, not the event loop."""
    bytes(view[:: mmap.PAGESIZE])


def _start(response: Response, *more: tuple[str, str]) -> Message:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in [*response.headers.items(), *more]]
    headers.append((b"content-length", str(response.encoded.nbytes).encode()))
    return {"type": "http.response.start", "status": response.status, "headers": headers}
