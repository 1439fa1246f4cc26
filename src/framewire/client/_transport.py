"""The default transport: a body goes from the kernel into one buffer, which becomes an Arrow buffer as it is."""

from __future__ import annotations

import ssl
import time
import weakref
from functools import partial
from typing import Any, Self

import pyarrow as pa

from framewire.client._call import Call, Response
from framewire.client._exchange import Exchange
from framewire.client._failures import AGAIN, BrokenTransferError, StaleConnectionError, timed_out
from framewire.client._pool import Pool, dial, shut_down
from framewire.errors import TooLargeError, TransferFailedError


class DirectTransport:
    """HTTP/1.1 to checked addresses, each body in one buffer. Thread-safe.

    Pass one as ``fetch(transport=...)`` for TLS settings or kept connections of its own. A subclass may override :meth:`send` to
    alter calls or to observe responses. It connects to the address of a call, which is never resolved; the Host header, SNI and
    the certificate check keep the name. Redirects are not followed, proxies of the environment not used, and no content coding
    but ``identity`` is accepted.

    Args:
        ssl_context: TLS settings; by default the system's authorities, hostname checked.
        connect_timeout_seconds: Time for the TCP connection, within the deadline.
    """

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None, connect_timeout_seconds: float = 10.0) -> None:
        self._ssl_context = ssl_context
        self._connect_timeout_seconds = connect_timeout_seconds
        self._pool = Pool()
        # A transport that is dropped without close() closes its sockets as well, so that none of them warns.
        self._finalizer = weakref.finalize(self, self._pool.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the kept connections. Exchanges that are running finish; later ones are refused."""
        self._finalizer()

    def send(self, call: Call) -> Response:
        """Carry out one exchange and return its response, read to its end.

        Raises:
            TransferFailedError: No connection, a malformed response, or the transfer broke off (then a ``BrokenTransferError``,
                which holds what arrived); says how much arrived.
            TransferTimeoutError: The deadline passed.
            TooLargeError: The body is above the limit; nothing was allocated.
            TransferDeniedError: The call has no checked address.
            LifecycleError: The transport was closed.
        """
        sock = self._pool.take(call.peer)
        if sock is not None:
            try:
                return self._exchange(call, Exchange(sock, deadline=call.deadline, reused=True))
            except StaleConnectionError:
                pass  # no byte of a response came: send the request once more, on a new connection
        return self._exchange(call, self._connect(call))

    def _connect(self, call: Call) -> Exchange:
        left = call.deadline - time.monotonic()
        if left <= 0:
            raise timed_out("before there was a connection")
        limit = min(left, self._connect_timeout_seconds)
        try:
            sock = dial(call.peer, timeout_seconds=limit, cancellation=call.cancellation)
        except TimeoutError:
            if time.monotonic() >= call.deadline:
                raise timed_out("before there was a connection") from None
            raise TransferFailedError(f"No connection to the resource server within {limit:g} s.", hint=AGAIN) from None
        if call.peer.scheme == "https":
            try:
                sock = self._tls_context().wrap_socket(
                    sock, server_hostname=call.peer.host, do_handshake_on_connect=False
                )
            except BaseException:
                sock.close()
                raise
        return Exchange(sock, deadline=call.deadline, reused=False)

    def _tls_context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            # Made late: loading the authorities takes longer than most exchanges, and loopback peers need none. Two threads
            # that meet here may both load them.
            context = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
            self._ssl_context = context
        return self._ssl_context

    def _exchange(self, call: Call, exchange: Exchange) -> Response:
        with exchange, call.cancellation.stopping(partial(shut_down, exchange.sock)):
            exchange.handshake()
            exchange.send(call.request)
            status, headers = exchange.read_head()
            length = call.admit(status, headers)
            if status in (204, 304):
                length = 0
            elif (length is None) is ("transfer-encoding" not in headers):
                # With neither, the end of the connection would end the body, and a cut would look complete. With both, two
                # readers could disagree on where the next response starts.
                raise TransferFailedError("The response must have either a Content-Length or chunks.", hint=AGAIN)
            hasher = call.hasher if length is not None and status in (200, 206) else None
            resumed = call.resume if status == 206 else None
            buffer, start = None, 0
            try:
                if length is None:
                    body = pa.py_buffer(exchange.read_chunked(call.max_bytes))
                else:
                    if resumed is not None:
                        status, headers, buffer, start = (
                            200,
                            resumed.headers or headers,
                            resumed.buffer,
                            resumed.received,
                        )
                    else:
                        buffer = _allocate(length)
                    # pyarrow gives signed bytes; a view of no length cannot be cast.
                    view = memoryview(buffer).cast("B")[start:] if length else memoryview(b"")
                    if len(view) != length:
                        raise TransferFailedError(
                            "The rest of the body has another length than was missing.", hint=AGAIN
                        )
                    exchange.read_into(view, hasher)
                    body = buffer
            except BrokenTransferError as broken:
                if status in (200, 206):  # the body of an error is no part of the table
                    broken.headers, broken.buffer, broken.received = headers, buffer, start + exchange.received
                raise
        if exchange.reusable:
            self._pool.give(call.peer, exchange.sock)
        return Response(status, headers, body, hasher is not None)


def _allocate(size: int) -> Any:
    try:
        return pa.allocate_buffer(size) if size else pa.py_buffer(b"")
    except MemoryError:
        pass
    raise TooLargeError(
        f"There is not enough memory for a body of {size} bytes.",
        hint="Select fewer rows or columns, or free memory.",
    )
