"""Adapter for httpx transports, blocking or async, that users pass in place of framewire's own."""

from __future__ import annotations

import time

import anyio
import anyio.from_thread
import httpx
import pyarrow as pa

from framewire.client._call import Call, Headers, Response
from framewire.client._failures import AGAIN, CallCancelledError, timed_out, too_large
from framewire.errors import ArgumentError, TransferFailedError


def send(transport: httpx.BaseTransport | httpx.AsyncBaseTransport, call: Call) -> Response:
    """Carry out one exchange through an httpx transport. It connects by itself; the body arrives in chunks and is copied once.

    Args:
        transport: Blocking, or async: then this has to run in a worker thread of anyio, and only the transport's own waiting
            goes back to the event loop.
        call: A cancellation ends an async exchange at once, a blocking one when the transport returns.
    """
    if not isinstance(transport, httpx.BaseTransport):
        try:
            return anyio.from_thread.run(_send_async, transport, call)
        except anyio.NoEventLoopError:
            hint = "Use fetch_async or resolve_async, or pass a blocking transport."
            raise ArgumentError("An async transport has no event loop in a blocking call.", hint=hint) from None
    response = transport.handle_request(_to_httpx(call))
    try:
        body = _Body(call, response)
        # A transport may return a response whose body it has already read.
        for chunk in [response.content] if response.is_stream_consumed else response.iter_raw():
            body.add(chunk)
    finally:
        response.close()
    return body.response()


async def _send_async(transport: httpx.AsyncBaseTransport, call: Call) -> Response:
    with anyio.CancelScope() as scope, call.cancellation.stopping(scope.cancel):
        response = await transport.handle_async_request(_to_httpx(call))
        try:
            body = _Body(call, response)
            if response.is_stream_consumed:
                body.add(response.content)
            else:
                async for chunk in response.aiter_raw():
                    body.add(chunk)
        finally:
            await response.aclose()
        return body.response()
    raise CallCancelledError


class _Body:
    """The body of one response while it arrives, held to the bounds of its call."""

    def __init__(self, call: Call, response: httpx.Response) -> None:
        self._call = call
        self._status = response.status_code
        self._headers = Headers.of(response.headers.raw)
        self._length = call.admit(self._status, self._headers)
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._call.max_bytes:
            raise too_large(None, self._call.max_bytes)
        if time.monotonic() > self._call.deadline:
            raise timed_out(f"after {self._size} body bytes")

    def response(self) -> Response:
        if self._length is not None and self._size != self._length:
            raise TransferFailedError("The response has another length than announced.", hint=AGAIN)
        return Response(self._status, self._headers, pa.py_buffer(b"".join(self._chunks)))


def _to_httpx(call: Call) -> httpx.Request:
    request = call.request
    host = next(value for name, value in request.headers if name == b"Host").decode("ascii")
    # httpx writes the length itself; a GET without content has none.
    return httpx.Request(
        request.method,
        f"{call.peer.scheme}://{host}{request.path}",
        headers=list(request.headers),
        content=request.content or None,
        extensions={"framewire.address": call.peer.address},
    )
