"""fetch: a handle's rows over HTTP, as an Arrow table. Thin blocking and async shells over one plan (``_plan``)."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx
import pyarrow as pa
from anyio.lowlevel import RunVar

from framewire import wire
from framewire.errors import S2SPError, SelectionError, TooLargeError, TransferFailedError, TransferTimeoutError
from framewire.fetch._legacy import LegacyPlan
from framewire.fetch._plan import AGAIN, FetchPlan, NotMappableError, WirePlan
from framewire.fetch._policy import PeerPolicy, refusal
from framewire.fetch._proof import MAX_PROOF_BYTES, Proof, Proven
from framewire.fetch._transport import DirectTransport
from framewire.selection import RowSpec, parse_columns, parse_row_ids, resolve_rows
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
    job = _Job(resource_url, row_ids, columns, where, settings, policy, deadline_seconds)
    return job.run(transport or _shared_transport())


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
        job = _Job(resource_url, row_ids, columns, where, settings, policy, deadline_seconds)
        if transport is None:
            return job.run(_shared_transport())
        if isinstance(transport, httpx.BaseTransport):
            return job.run(transport)
        return anyio.from_thread.run(job.run_async, transport)

    return await anyio.to_thread.run_sync(blocking, limiter=_limiter(), abandon_on_cancel=True)


def _limiter() -> anyio.CapacityLimiter:
    limiter = _LIMITER.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_FETCH_THREADS)
        _LIMITER.set(limiter)
    return limiter


_PROVEN: Final = Proven()


class _Job:
    """One fetch, checked and planned; it may take several exchanges."""

    def __init__(
        self,
        resource_url: str,
        row_ids: RowIds | None,
        columns: Sequence[str] | None,
        where: str | None,
        settings: Settings | None,
        policy: PeerPolicy | None,
        deadline_seconds: float | None,
    ) -> None:
        self.settings = (settings or Settings.from_env()).replace(deadline_seconds=deadline_seconds)
        self.deadline = time.monotonic() + self.settings.deadline_seconds
        if where:
            raise SelectionError("'where' is not available yet.", hint="Select with row_ids.")
        self.rows = None if row_ids is None else parse_row_ids(row_ids)
        self.columns = None if columns is None else parse_columns(columns)
        self.target = (policy or PeerPolicy.from_settings(self.settings)).check(resource_url)

    def run(self, transport: httpx.BaseTransport) -> pa.Table:
        if (proof := self._needed_proof()) is not None:
            with _own_errors():
                response = transport.handle_request(self._prepared(proof.request(), MAX_PROOF_BYTES))
                try:
                    body = response.read()
                finally:
                    response.close()
            self._judge(proof, response.status_code, body)
        if self.target.is_legacy and self.rows is not None and self.rows.is_empty:
            return _nothing()
        try:
            return self._whole(transport)
        except TooLargeError as exc:
            parts = self._parts(exc)
        return pa.concat_tables([self._exchange(self._plan(part), transport) for part in parts])

    async def run_async(self, transport: httpx.AsyncBaseTransport) -> pa.Table:
        if (proof := self._needed_proof()) is not None:
            with _own_errors():
                response = await transport.handle_async_request(self._prepared(proof.request(), MAX_PROOF_BYTES))
                try:
                    body = await response.aread()
                finally:
                    await response.aclose()
            self._judge(proof, response.status_code, body)
        if self.target.is_legacy and self.rows is not None and self.rows.is_empty:
            return _nothing()
        try:
            return await self._exchange_async(self._plan(self.rows), transport)
        except TooLargeError as exc:
            parts = self._parts(exc)
        return pa.concat_tables([await self._exchange_async(self._plan(part), transport) for part in parts])

    def _needed_proof(self) -> Proof | None:
        """The challenge for a peer that only the registry allows; None where it was answered before."""
        registration = self.target.registration
        if registration is None:
            return None
        if _PROVEN.knows(registration):
            self.target = replace(self.target, trusted=True)
            return None
        return Proof(registration)

    def _judge(self, proof: Proof, status: int, body: bytes) -> None:
        if not proof.holds(status, body):
            raise refusal()
        _PROVEN.add(proof.registration)
        self.target = replace(self.target, trusted=True)

    def _whole(self, transport: httpx.BaseTransport) -> pa.Table:
        if (
            self.rows is None
            and self.target.trusted
            and self.settings.same_host == "auto"
            and not self.target.is_legacy
        ):
            try:
                plan = WirePlan(self.target, None, self.columns, self.settings, may_map=True)
                return self._exchange(plan, transport)
            except NotMappableError:
                pass  # Any doubt about a mapping is settled by sending the bytes.
        return self._exchange(self._plan(self.rows), transport)

    def _plan(self, rows: RowSpec | None) -> FetchPlan:
        kind = LegacyPlan if self.target.is_legacy else WirePlan
        return kind(self.target, rows, self.columns, self.settings)

    def _parts(self, exc: TooLargeError) -> list[RowSpec]:
        """The pieces that a server said would fit, or ``exc`` again where it did not say."""
        fit, total = exc.details.get("rows_that_fit"), exc.details.get("total_rows")
        if self.target.is_legacy or self.rows is None or not isinstance(fit, int) or fit < 1:
            raise exc
        rows = self.rows
        if rows.is_open:
            if not isinstance(total, int):
                raise exc
            fitted = resolve_rows(rows, total)
            rows = RowSpec(fitted.starts, fitted.stops - 1)
        if fit >= (rows.count() or 0):
            raise exc
        return rows.split(fit)

    def _prepared(
        self, request: httpx.Request, max_bytes: int, check_head: Callable[[int, httpx.Headers], None] | None = None
    ) -> httpx.Request:
        request.extensions = {
            **request.extensions,
            "framewire.address": self.target.address,
            "framewire.deadline": self.deadline,
            "framewire.max_bytes": max_bytes,
            "framewire.check_head": check_head,
        }
        return request

    def _request(self, plan: FetchPlan) -> httpx.Request:
        return self._prepared(plan.request(), self.settings.max_body_bytes, plan.check_head)

    def _exchange(self, plan: FetchPlan, transport: httpx.BaseTransport) -> pa.Table:
        with _own_errors():
            response = transport.handle_request(self._request(plan))
            buffer = response.extensions.get("framewire.buffer")
            if buffer is None:
                plan.check_head(response.status_code, response.headers)
                try:
                    # A transport may hand over a response that it has read already.
                    read = response.is_stream_consumed
                    buffer = self._collect([response.content] if read else response.iter_raw())
                finally:
                    response.close()
        return plan.finish(response.status_code, response.headers, buffer)

    async def _exchange_async(self, plan: FetchPlan, transport: httpx.AsyncBaseTransport) -> pa.Table:
        with _own_errors():
            response = await transport.handle_async_request(self._request(plan))
            plan.check_head(response.status_code, response.headers)
            chunks: list[bytes] = []
            size = 0
            try:
                async for chunk in response.aiter_raw():
                    chunks.append(chunk)
                    size += len(chunk)
                    self._check_progress(size)
            finally:
                await response.aclose()
        buffer = pa.py_buffer(b"".join(chunks))
        return await anyio.to_thread.run_sync(
            plan.finish, response.status_code, response.headers, buffer, limiter=_limiter()
        )

    def _collect(self, chunks: Iterable[bytes]) -> pa.Buffer:
        parts: list[bytes] = []
        size = 0
        for chunk in chunks:
            parts.append(chunk)
            size += len(chunk)
            self._check_progress(size)
        return pa.py_buffer(b"".join(parts))

    def _check_progress(self, size: int) -> None:
        if size > self.settings.max_body_bytes:
            raise TooLargeError(
                f"The body is above {self.settings.max_body_bytes} bytes.", hint="Raise FRAMEWIRE_MAX_BODY_BYTES."
            )
        if time.monotonic() > self.deadline:
            raise TransferTimeoutError(
                f"The transfer took longer than {self.settings.deadline_seconds:g} s.",
                hint="Raise FRAMEWIRE_DEADLINE_SECONDS, or select fewer rows.",
            )


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


_ROW_ID_SCHEMA: Final = pa.schema([pa.field(wire.ROW_ID, pa.int64(), nullable=False)])


def _nothing() -> pa.Table:
    """No rows of a legacy peer: it cannot be asked for none (it would answer with all), so nothing but the id is known."""
    return _ROW_ID_SCHEMA.empty_table()


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
