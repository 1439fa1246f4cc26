"""Timeouts that uvicorn lacks: slow requests, oversized headers, stalled readers.

A connection that sends half a request, or asks for a body and never reads it, costs its sender nothing and the server a socket,
buffers and perhaps a pinned body. Each connection checks itself once a second.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import socket
import sys
from contextlib import suppress
from functools import cache
from typing import Any, Final

from framewire.host.addresses import is_local_peer

REQUEST_SECONDS: Final = 10.0
"""Time from the first byte of a request to its last, and from the connection to its first request."""
REQUEST_BYTES_PER_SECOND: Final = 1 << 20
"""Request bodies gain time as they arrive: 16 MiB may take 26 s."""
STALL_SECONDS: Final = 10.0
"""Time without a byte of progress while bytes wait to be sent."""
MAX_HEAD_BYTES: Final = 64 << 10
"""Request line and headers: neither parser bounds them."""
UNSENT_BYTES: Final = 1 << 20
"""Bytes that the kernel buffers for a peer whose window is full. Its default is several megabytes, and copying those for readers
that never read delays every other request: with 500 of them the p99 was 50 to 150 ms, and is 12 to 21 ms with this. 256 KiB
brought it to 10 ms but cost good readers a quarter of their throughput (3.2 to 2.4 GB/s); this was within the noise."""
_NOTSENT_LOWAT: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", 25 if sys.platform == "linux" else None)
_CONGESTION: Final[int | None] = getattr(socket, "TCP_CONGESTION", None)
_TICK_SECONDS: Final = 1.0


class Guard:
    """Mix-in for uvicorn's HTTP protocols. It uses the attributes that both have: ``loop``, ``transport`` and ``cycle``."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start watching."""
        super().connection_made(transport)  # type: ignore[misc]
        if (sock := transport.get_extra_info("socket")) is not None:
            _tune(sock, transport.get_extra_info("peername"))
        self.access_log = False  # its lines hold the path, and so the token
        self._connected_at = self._head_at = self._moved_at = self.loop.time()
        self._head_bytes = self._request_bytes = 0
        self._waiting_bytes = 0
        self._timer = self.loop.call_later(_TICK_SECONDS, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._timer.cancel()
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        """Count what arrives, by request."""
        before = self.cycle
        if self._is_idle() and not self._head_bytes:
            self._head_at, self._request_bytes = self.loop.time(), 0
        self._request_bytes += len(data)
        super().data_received(data)  # type: ignore[misc]
        if self.cycle is not before or not self._is_idle():
            self._head_bytes = 0
        else:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.transport.abort()

    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _check(self) -> None:
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            return
        if self._is_late(self.loop.time()):
            # close() would wait for the reader to drain the buffer.
            self.transport.abort()
            return
        self._timer = self.loop.call_later(_TICK_SECONDS, self._check)

    def _is_late(self, now: float) -> bool:
        waiting = self.transport.get_write_buffer_size()
        if waiting != self._waiting_bytes or not waiting:
            self._moved_at, self._waiting_bytes = now, waiting
        elif now - self._moved_at >= STALL_SECONDS:
            return True
        if self._is_idle():
            if self._head_bytes:
                return now - self._head_at >= REQUEST_SECONDS
            if self.cycle is None:
                return now - self._connected_at >= REQUEST_SECONDS
            # Answered before its body arrived (a refusal): the rest gets no more time than any body.
            return bool(self.cycle.more_body) and now - self._head_at >= REQUEST_SECONDS
        if self.cycle.more_body and not self.cycle.response_started:
            return now - self._head_at >= REQUEST_SECONDS + self._request_bytes / REQUEST_BYTES_PER_SECOND
        return False


def _tune(sock: Any, peer: Any) -> None:
    if _NOTSENT_LOWAT is not None:
        sock.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, UNSENT_BYTES)
    if _CONGESTION is not None and isinstance(peer, tuple) and is_local_peer(peer[0]):
        # Nothing congests loopback, but where a machine's default is BBR the kernel paces what is sent there too: a body of
        # 1.4 GB took 5 to 15% longer. Every kernel has reno; one that forbids it keeps its default.
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, _CONGESTION, b"reno")


@cache
def guarded_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's fastest installed HTTP protocol with the guard mixed in."""
    name = "httptools" if importlib.util.find_spec("httptools") else "h11"
    module = importlib.import_module(f"uvicorn.protocols.http.{name}_impl")
    base = module.HttpToolsProtocol if name == "httptools" else module.H11Protocol
    return type(f"Guarded{base.__name__}", (Guard, base), {})
