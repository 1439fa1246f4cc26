"""fetch: a handle's rows over HTTP, as an Arrow table. Thin blocking and async shells over one plan (``_plan``)."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeGuard

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx
import pyarrow as pa
from anyio.lowlevel import RunVar

from framewire.client._call import Answer, Call
from framewire.client._job import Job, Pause
from framewire.client._plan import AGAIN
from framewire.client._policy import PeerPolicy
from framewire.client._transport import DirectTransport
from framewire.errors import S2SPError, TooLargeError, TransferFailedError, TransferTimeoutError
from framewire.settings import Settings
from framewire.typing import RowIds

__all__ = ["DirectTransport", "PeerPolicy", "fetch", "fetch_async"]

_FETCH_THREADS: Final = 32
"""Fetches at once in one event loop: each holds a thread while its body arrives."""
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("framewire.fetch")


def fetch(
    resource_url: str,
    row_ids: RowIds | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: httpx.BaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pa.Table:
    """Fetch rows from a data plane. Blocks; see :func:`fetch_async`.

    Args:
        resource_url: Presigned URL of a resource tool's reply or a :class:`~framewire.Handle`.
        row_ids: Rows, in the order wanted, duplicates kept; every row when None, none for ``[]``.
        columns: Column names in the order wanted; every column when None.
        where: Reserved; refused for now.
        settings: Limits; read from the environment when None.
        policy: Which peers may be called; made from ``settings`` when None.
        transport: An httpx transport in place of framewire's own; it then resolves and connects by itself.
        deadline_seconds: Time for the whole exchange; wins over ``settings``.

    Returns:
        A table whose first column is ``_row_id`` (int64, not null), then the columns asked for. It may be larger than memory that
        is freed soon: its columns are views into one buffer, kept alive by any of them.

    Raises:
        TransferDeniedError: The policy refuses the URL; nothing was sent.
        InvalidTokenError: The handle is unknown, expired or revoked.
        RowOutOfRangeError, UnknownColumnError, SelectionError: The selection does not fit; the offender is named.
        TransferFailedError: The transfer broke off, or what arrived is not what was announced.
        TransferTimeoutError: The deadline passed.
    """
    job = Job(resource_url, row_ids, columns, where, settings, policy, deadline_seconds)
    return _run(job, transport or _shared_transport())


async def fetch_async(
    resource_url: str,
    row_ids: RowIds | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pa.Table:
    """:func:`fetch` without blocking the event loop; ``transport`` may be an async one as well."""

    def blocking() -> pa.Table:
        job = Job(resource_url, row_ids, columns, where, settings, policy, deadline_seconds)
        if transport is None:
            return _run(job, _shared_transport())
        if isinstance(transport, httpx.BaseTransport):
            return _run(job, transport)
        # The rules run here, in the thread; only the transport's own waiting goes back to the loop.
        return _run(job, _Bridge(transport))

    return await anyio.to_thread.run_sync(blocking, limiter=_limiter(), abandon_on_cancel=True)


def _limiter() -> anyio.CapacityLimiter:
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_FETCH_THREADS)
        _LIMITER.set(limiter)
    return limiter


def _run(job: Job, transport: httpx.BaseTransport) -> pa.Table:
    """Carry out a job's steps one after the other."""
    steps = job.steps()
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                step = next(steps)
                continue
            try:
                got = _exchange(job, step, transport)
            except S2SPError as exc:
                step = steps.throw(exc)
            else:
                step = steps.send(got)
    except StopIteration as done:
        table: pa.Table = done.value
        return table


def _exchange(job: Job, call: Call, transport: httpx.BaseTransport) -> Answer:
    with _own_errors():
        if _takes_calls(transport):
            return transport.send(call)
        response = transport.handle_request(call.to_httpx())
        try:
            if call.check_head is not None:
                call.check_head(response.status_code, response.headers)
            buffer = response.extensions.get("framewire.buffer")
            if buffer is None:
                # A transport may hand over a response that it has read already.
                read = response.is_stream_consumed
                buffer = _collect(job, [response.content] if read else response.iter_raw(), call.max_bytes)
        finally:
            response.close()
    hashed = bool(response.extensions.get("framewire.hashed"))
    return Answer(response.status_code, response.headers, buffer, hashed)


def _takes_calls(transport: httpx.BaseTransport) -> TypeGuard[DirectTransport]:
    """Whether it is framewire's own, and not a subclass that does something of its own to requests."""
    return isinstance(transport, DirectTransport) and type(transport).handle_request is DirectTransport.handle_request


def _collect(job: Job, chunks: Iterable[bytes], limit: int) -> pa.Buffer:
    """The body of a transport that is not ours: it comes in chunks, and is copied once."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TooLargeError(f"The body is above {limit} bytes.", hint="Raise FRAMEWIRE_MAX_BODY_BYTES.")
        if time.monotonic() > job.deadline:
            raise TransferTimeoutError(
                f"The transfer took longer than {job.settings.deadline_seconds:g} s.",
                hint="Raise FRAMEWIRE_DEADLINE_SECONDS, or select fewer rows.",
            )
    return pa.py_buffer(b"".join(parts))


class _Bridge(httpx.BaseTransport):
    """An async transport of the caller's loop, for rules that run in one of its worker threads."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return anyio.from_thread.run(self._handle, request)

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        try:
            if (check := request.extensions["framewire.check_head"]) is not None:
                check(response.status_code, response.headers)
            limit, parts, size = request.extensions["framewire.max_bytes"], [], 0
            async for chunk in response.aiter_raw():
                parts.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise TooLargeError(f"The body is above {limit} bytes.", hint="Raise FRAMEWIRE_MAX_BODY_BYTES.")
        finally:
            await response.aclose()
        extensions = {"framewire.buffer": pa.py_buffer(b"".join(parts))}
        return httpx.Response(response.status_code, headers=response.headers, extensions=extensions, request=request)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Whatever a transport raises becomes one of our errors; its own text may hold the URL and is dropped."""
    try:
        yield
    except S2SPError:
        raise
    except httpx.TimeoutException:
        raise TransferTimeoutError("The transfer took too long.", hint="Raise FRAMEWIRE_DEADLINE_SECONDS.") from None
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as exc:
        raise TransferFailedError(f"The transfer broke off ({type(exc).__name__}).", hint=AGAIN) from None


_shared: DirectTransport | None = None
_shared_lock = threading.Lock()


def _shared_transport() -> DirectTransport:
    """The process's own transport: its kept connections serve every fetch."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = DirectTransport()
            atexit.register(_shared.close)
        return _shared
