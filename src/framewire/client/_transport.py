"""The default transport: a body goes from the kernel into one buffer, which becomes an Arrow buffer as it is."""

from __future__ import annotations

import ssl
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import httpx
import pyarrow as pa

from framewire.client._call import Answer, Call, Headers
from framewire.client._exchange import AGAIN, BrokenTransferError, Exchange, StaleConnectionError, timed_out, too_large
from framewire.client._head import Head
from framewire.client._pool import Peer, Pool, dial, wrap_tls
from framewire.errors import TooLargeError, TransferFailedError
from framewire.settings import Settings

_MAX_ERROR_BYTES: Final = 1 << 20
"""Body of an answer that is no success, at most: an error is a short text, whatever the limit for tables."""
_SLICE: Final = 1 << 20


class DirectTransport(httpx.BaseTransport):
    """HTTP/1.1 to one checked address, the body in one buffer. Thread-safe; usable inside ``httpx.Client`` as well.

    It reads from ``request.extensions``:

    - ``framewire.address``: IP literal to connect to. The Host header, SNI and the certificate check keep the URL's
      name. Without it the URL's host must be an IP literal itself: this transport never resolves a name.
    - ``framewire.deadline``: ``time.monotonic()`` value at which the whole exchange ends (default: 120 s from now).
    - ``framewire.max_bytes``: largest body, in bytes (default: 8 GiB). Answers that are no success: 1 MiB at most.
    - ``framewire.check_head``: called with status and headers before a byte of the body is read or allocated; it may
      raise.

    - ``framewire.hasher``: an object with ``update(bytes)`` that is told of every body byte of a 200 or a 206 as it arrives;
      where it was, the response's extensions have ``framewire.hashed``.
    - ``framewire.into``: a writable view that the body of a 206 is put into, of exactly its length: the rest of a body whose
      transfer broke off.

    A transfer that breaks off raises ``BrokenTransferError``, which holds what had come. The response carries the body in
    ``extensions["framewire.buffer"]``, a ``pa.Buffer`` of exactly its bytes; ``response.read()`` gives a copy. Redirects are
    not followed, proxies of the environment not used, and no content coding but ``identity`` is accepted.

    Args:
        ssl_context: TLS settings; by default the system's authorities, hostname checked.
        connect_timeout_seconds: Time for the TCP connection, within the deadline.
    """

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None, connect_timeout_seconds: float = 10.0) -> None:
        self._context = ssl_context
        self._context_lock = threading.Lock()
        self._connect_timeout_seconds = connect_timeout_seconds
        self._pool = Pool()
        # A transport that is dropped without close() closes its sockets as well, so that none of them warns.
        self._finalizer = weakref.finalize(self, self._pool.close)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Carry out one exchange and return its answer, read to its end.

        Raises:
            TransferFailedError: No connection, no well-formed answer, or the transfer broke off; says how far it came.
            TransferTimeoutError: The deadline passed.
            TooLargeError: The body is above the limit; nothing was allocated.
            TransferDeniedError: There is no checked address to connect to.
            LifecycleError: The transport was closed.
        """
        answer = self.send(_call_of(request))
        return httpx.Response(
            answer.status,
            headers=dict(answer.headers.items()),  # type: ignore[attr-defined]
            stream=_BufferStream(answer.body),
            request=request,
            extensions={
                "framewire.buffer": answer.body,
                "framewire.hashed": answer.hashed,
                "http_version": b"HTTP/1.1",
            },
        )

    def send(self, call: Call) -> Answer:
        """:meth:`handle_request` without httpx's objects, whose making takes longer than a small answer."""
        sock = self._pool.take(call.peer)
        if sock is not None:
            try:
                return self._carry_out(call, Exchange(sock, deadline=call.deadline, reused=True))
            except StaleConnectionError:
                pass  # no byte of an answer came: ask once more, on a new connection
        return self._carry_out(call, self._connect(call))

    def close(self) -> None:
        """Close the kept connections. Exchanges that are running finish; later ones are refused."""
        self._finalizer()

    def _connect(self, call: Call) -> Exchange:
        left = call.deadline - time.monotonic()
        sock = None
        if left > 0:
            with suppress(TimeoutError):
                sock = dial(call.peer, timeout_seconds=min(left, self._connect_timeout_seconds))
        if sock is None:
            if time.monotonic() >= call.deadline:
                raise timed_out("before there was a connection")
            raise TransferFailedError(
                f"No connection to the resource server within {self._connect_timeout_seconds:g} s.", hint=AGAIN
            )
        if call.peer.scheme == "http":
            return Exchange(sock, deadline=call.deadline, reused=False)
        try:
            tls = wrap_tls(sock, self._tls_context(), call.peer.host)
        except BaseException:
            sock.close()
            raise
        return Exchange(tls, deadline=call.deadline, reused=False)

    def _tls_context(self) -> ssl.SSLContext:
        with self._context_lock:
            if self._context is None:
                # Made late: loading the authorities takes longer than most exchanges, and loopback peers need none.
                self._context = ssl.create_default_context()
                self._context.set_alpn_protocols(["http/1.1"])
            return self._context

    def _carry_out(self, call: Call, exchange: Exchange) -> Answer:
        with exchange:
            exchange.handshake()
            exchange.send(call.method, call.target, call.headers, call.content)
            head = exchange.read_head()
            headers = head.headers
            if call.check_head is not None:
                call.check_head(head.status, headers)
            try:
                buffer = _read_body(exchange, head, headers, call)
            except BrokenTransferError as broken:
                broken.headers, broken.received = headers, exchange.received
                raise
        if exchange.reusable:
            self._pool.give(call.peer, exchange.sock)
        return Answer(head.status, headers, buffer, call.hasher is not None and head.status in (200, 206))


def _call_of(request: httpx.Request) -> Call:
    """A request and what its extensions say, defaults filled in."""
    url, extensions = request.url, request.extensions
    if url.scheme not in ("http", "https"):
        raise TransferFailedError("Only http and https can be fetched.")
    peer = Peer(
        scheme=url.scheme,
        host=url.host,
        port=url.port or (443 if url.scheme == "https" else 80),
        address=extensions.get("framewire.address", url.host),
    )
    return Call(
        method=request.method,
        target=url.raw_path,
        headers=tuple(request.headers.raw),
        content=request.read(),  # whole, so that it can be sent twice when a kept connection was stale
        peer=peer,
        deadline=extensions.get("framewire.deadline", time.monotonic() + Settings.deadline_seconds),
        max_bytes=extensions.get("framewire.max_bytes", Settings.max_body_bytes),
        check_head=extensions.get("framewire.check_head"),
        hasher=extensions.get("framewire.hasher"),
        into=extensions.get("framewire.into"),
    )


def _read_body(exchange: Exchange, head: Head, headers: Headers, call: Call) -> Any:
    """The body as a ``pa.Buffer``; everything is judged by the head before a byte is allocated."""
    if call.method == "HEAD" or head.status in (204, 304):
        exchange.no_body()
        return pa.py_buffer(b"")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise TransferFailedError(
            "The answer's body is in a content coding that was not asked for.",
            hint="A proxy may compress it: have it pass application/vnd.apache.arrow.stream unchanged.",
        )
    max_bytes = call.max_bytes if head.status < 300 else min(call.max_bytes, _MAX_ERROR_BYTES)
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if (length is None) is (coding is None):
        # With neither, the end of the connection would end the body, and a cut would look complete. With both, two
        # readers could disagree on where the next answer starts.
        raise TransferFailedError("The answer must have either a Content-Length or chunks.", hint=AGAIN)
    if length is None:
        return pa.py_buffer(exchange.read_chunked(max_bytes))
    size = int(length)
    if size > max_bytes:
        raise too_large(size, max_bytes)
    if call.into is not None and head.status == 206:
        if len(call.into) != size:
            raise TransferFailedError("The rest of the body has another length than was missing.", hint=AGAIN)
        exchange.read_into(call.into, call.hasher)
        return pa.py_buffer(b"")
    buffer = _allocate(size)
    try:
        # pyarrow gives signed bytes; a view of no length cannot be cast.
        hasher = call.hasher if head.status == 200 else None
        exchange.read_into(memoryview(buffer).cast("B") if size else memoryview(b""), hasher)
    except BrokenTransferError as broken:
        broken.buffer = buffer
        raise
    return buffer


def _allocate(size: int) -> Any:
    try:
        return pa.allocate_buffer(size) if size else pa.py_buffer(b"")
    except MemoryError:
        pass
    raise TooLargeError(
        f"There is no memory for a body of {size} bytes.", hint="Select fewer rows or columns, or free memory."
    )


class _BufferStream(httpx.SyncByteStream):
    """The filled buffer as httpx wants to see a body; copies, a slice at a time."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def __iter__(self) -> Iterator[bytes]:
        view = memoryview(self._buffer)
        for start in range(0, len(view), _SLICE):
            yield bytes(view[start : start + _SLICE])
