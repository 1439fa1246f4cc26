"""One fetch from its arguments to its table: which requests are made, and in which order."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import httpx
import pyarrow as pa

from framewire import wire
from framewire.arrow import write
from framewire.client._call import Call, HeadCheck, Headers, RawHeaders, Request, Response
from framewire.client._failures import AGAIN, BrokenTransferError, timed_out, too_large
from framewire.client._options import Options, refuse_where
from framewire.client._plan import FetchPlan, NotMappableError, WirePlan, error_of
from framewire.client._policy import PeerPolicy, refusal
from framewire.client._pool import Peer
from framewire.client._proof import MAX_PROOF_BYTES, challenge_request, is_proof, is_proven, remember
from framewire.errors import (
    BadBodyError,
    LeasedError,
    S2SPError,
    TooLargeError,
    TransferFailedError,
    TransferTimeoutError,
)
from framewire.host.registry import new_challenge
from framewire.selection import RowSpec, parse_columns, parse_row_ids, resolve_rows
from framewire.typing import RowIds

logger = logging.getLogger(__name__)

_TRIES_WITHOUT_PROGRESS: Final = 6
"""Attempts in a row that bring no byte, after a transfer broke off: about three seconds in all."""
_FIRST_PAUSE_SECONDS: Final = 0.05
_MAX_PAUSE_SECONDS: Final = 1.0
_ACK_HEADERS: Final = (
    (b"Content-Type", wire.JSON.encode()),
    (b"Accept-Encoding", b"identity"),
    (wire.H_VERSION.encode(), wire.WIRE_VERSION.encode()),
)
_ROW_ID_SCHEMA: Final = pa.schema([pa.field(wire.ROW_ID, pa.int64(), nullable=False)])


class Job:
    """One fetch, its arguments checked and its target allowed. Arguments as in :func:`framewire.fetch`."""

    def __init__(
        self,
        resource_url: str,
        row_ids: RowIds | RowSpec | None,
        columns: Sequence[str] | None,
        where: str | None,
        options: Options,
    ) -> None:
        self.settings = options.settings
        self.deadline = time.monotonic() + self.settings.deadline_seconds
        refuse_where(where)
        self.rows = None if row_ids is None else parse_row_ids(row_ids)
        self.columns = None if columns is None else parse_columns(columns)
        self.target = (options.policy or PeerPolicy.from_settings(self.settings)).check(resource_url)
        self._sender = options.sender()
        self._cancellation = options.cancellation
        # Of a handle of limited use: the lease that every further request of this fetch sends back.
        self._lease: str | None = None

    def run(self) -> pa.Table:
        """Carry out the whole fetch. Blocks."""
        self._prove()
        if self.target.is_legacy and self.rows is not None and self.rows.is_empty:
            # It cannot be asked for no rows (it would answer with all), so nothing but the id is known.
            return _ROW_ID_SCHEMA.empty_table()
        try:
            response, table = self._whole()
        except TooLargeError as exc:
            tables: list[pa.Table] = []
            nbytes = 0
            for rows in self._parts(exc):
                self._cancellation.check()
                if time.monotonic() >= self.deadline:
                    raise timed_out(f"after {len(tables)} parts of the selection") from None
                response, table = self._exchange(self._plan(rows))
                tables.append(table)
                nbytes += table.nbytes
                if nbytes > self.settings.max_body_bytes:
                    raise too_large(None, self.settings.max_body_bytes) from None
            table = pa.concat_tables(tables)
        self._acknowledge(response)
        return table

    # --- trust --------------------------------------------------------------------------------------------------------

    def _prove(self) -> None:
        """Challenge a peer that only the registry allows, before it is sent the token."""
        registration = self.target.registration
        if registration is None:
            return
        if not is_proven(registration):
            challenge = new_challenge()
            response = self._send(self._call(challenge_request(challenge), MAX_PROOF_BYTES))
            if response.status == 503:
                raise error_of(response.status, response.body)  # a data plane that is full, not a stranger
            if not is_proof(registration, challenge, response.status, bytes(response.body)):
                raise refusal()
            remember(registration)
        self.target = replace(self.target, trusted=True)

    # --- the selection, whole or in parts -----------------------------------------------------------------------------

    def _whole(self) -> tuple[Response, pa.Table]:
        own = self.target.trusted and not self.target.is_legacy and self.settings.same_host == "auto"
        if own and self.rows is None:
            try:
                return self._exchange(WirePlan(self.target, None, self.columns, self.settings, may_map=True))
            except NotMappableError:
                pass  # Any doubt about a mapping is settled by sending the bytes.
        return self._exchange(self._plan(self.rows))

    def _plan(self, rows: RowSpec | None) -> FetchPlan:
        if not self.target.is_legacy:
            return WirePlan(self.target, rows, self.columns, self.settings)
        # Only here: it loads the whole conversion of JSON values, 180 ms of the first fetch, and few processes meet such a peer.
        from framewire.client._legacy import LegacyPlan

        return LegacyPlan(self.target, rows, self.columns, self.settings)

    def _parts(self, exc: TooLargeError) -> Iterator[RowSpec]:
        """The pieces that a server said would fit, or ``exc`` again where it did not say."""
        fit, total = exc.details.get("rows_that_fit"), exc.details.get("total_rows")
        if self.target.is_legacy or self.rows is None or not isinstance(fit, int) or fit < 1:
            raise exc
        rows = self.rows
        if rows.is_open:
            if not isinstance(total, int) or not 0 <= total < 1 << 62:
                raise exc
            fitted = resolve_rows(rows, total)
            rows = RowSpec(fitted.starts, fitted.stops - 1)
        # Both numbers are the server's: more rows than are allowed in all are refused before the first part is asked for.
        if not fit < (rows.count() or 0) <= self.settings.max_rows:
            raise exc
        return rows.split(fit)

    # --- one exchange, resumed where it broke off ---------------------------------------------------------------------

    def _exchange(self, plan: FetchPlan) -> tuple[Response, pa.Table]:
        broken: BrokenTransferError | None = None
        failures = 0
        hasher = write.new_hasher()
        while True:
            call = self._request(plan, broken)
            if call.resume is None:
                hasher = write.new_hasher()
            call.hasher = hasher
            try:
                response = self._send(call)
                self._lease = response.headers.get(wire.H_LEASE, self._lease)
                checksum = write.checksum_text(hasher) if response.hashed else None
                return response, plan.finish(response.status, response.headers, response.body, checksum)
            except TransferTimeoutError:
                if broken is None:
                    raise
                # Report the broken transfer, not the deadline that prevented the retry.
                raise broken from None
            except (BrokenTransferError, LeasedError, TransferFailedError) as exc:
                failures = self._failures_after(exc, call, broken, failures)
                if isinstance(exc, BrokenTransferError) and (exc.buffer is not None or not _can_resume(broken)):
                    broken = exc
                if broken is not None and broken.headers is not None:
                    self._lease = broken.headers.get(wire.H_LEASE, self._lease)
            self._cancellation.sleep(_pause_seconds(failures))

    def _failures_after(self, exc: S2SPError, call: Call, broken: BrokenTransferError | None, failures: int) -> int:
        """Count the attempts in a row that brought no byte, ``exc`` included; raise ``exc`` where there must be no other."""
        if self.target.is_legacy or not _may_retry(exc, broken):
            raise exc
        start = 0 if call.resume is None else call.resume.received
        progress = isinstance(exc, BrokenTransferError) and exc.received > start and _can_resume(exc)
        failures = 0 if progress else failures + 1
        if failures >= _TRIES_WITHOUT_PROGRESS and not isinstance(exc, LeasedError):
            raise exc
        if time.monotonic() + _pause_seconds(failures) >= self.deadline:
            raise exc
        return failures

    def _request(self, plan: FetchPlan, broken: BrokenTransferError | None) -> Call:
        request = plan.request()
        if broken is None or broken.headers is None or not _can_resume(broken):
            return self._call(request, self.settings.max_body_bytes, plan.check_head)
        rest = ((b"Range", b"bytes=%d-" % broken.received), (b"If-Range", broken.headers["etag"].encode("latin-1")))
        call = self._call(request, self.settings.max_body_bytes, _rest_check(plan, broken), rest)
        call.resume = broken
        return call

    def _call(
        self, request: Request, max_bytes: int, check_head: HeadCheck | None = None, extra: RawHeaders = ()
    ) -> Call:
        """``request`` to the target, under the fetch's lease if there is one."""
        target = self.target
        if self._lease is not None:
            extra = (*extra, (wire.H_LEASE.encode(), self._lease.encode("latin-1")))
        return Call(
            request._replace(
                headers=((b"Host", target.authority.encode("ascii")), *request.headers, *extra),
                path=request.path or target.path,
            ),
            Peer(target.scheme, target.host, target.port, target.address),
            self.deadline,
            max_bytes,
            check_head,
            cancellation=self._cancellation,
        )

    def _send(self, call: Call) -> Response:
        """Carry out ``call``. Foreign errors become framewire's; their own text may hold the URL and is dropped."""
        try:
            return self._sender(call)
        except S2SPError:
            raise
        except httpx.TimeoutException:
            raise TransferTimeoutError(
                "The transfer took too long.", hint="Raise FRAMEWIRE_DEADLINE_SECONDS."
            ) from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as exc:
            raise TransferFailedError(f"The transfer broke off ({type(exc).__name__}).", hint=AGAIN) from None

    # --- uses ---------------------------------------------------------------------------------------------------------

    def _acknowledge(self, response: Response) -> None:
        """Tell the server of a handle of limited use that its body is here.

        Raises:
            LeasedError, SpentError: The lease had lapsed, and another client has the use: the body must not be used.
        """
        if self._lease is None:
            return
        headers = response.headers
        note = {"ack": self._lease, "rows": int(headers[wire.H_ROWS]), "checksum": headers[wire.H_CHECKSUM]}
        request = Request("POST", _ACK_HEADERS, json.dumps(note).encode())
        for attempt in range(_TRIES_WITHOUT_PROGRESS):
            try:
                reply = self._send(self._call(request, MAX_PROOF_BYTES))
            except (TransferFailedError, TransferTimeoutError):
                if time.monotonic() >= self.deadline:
                    break
                self._cancellation.sleep(_pause_seconds(attempt))
                continue
            if reply.status != 200:
                raise error_of(reply.status, reply.body)
            return
        # The body is whole, and whether the server heard of it cannot be known: it is not thrown away for that.
        logger.warning("A use of a resource_url could not be acknowledged; its server may count it as not delivered.")


def _pause_seconds(failures: int) -> float:
    return min(_FIRST_PAUSE_SECONDS * 2.0**failures, _MAX_PAUSE_SECONDS)


def _may_retry(exc: S2SPError, broken: BrokenTransferError | None) -> bool:
    """Whether to go on: after a broken transfer, also while the server is away or its lease is still out."""
    if isinstance(exc, BrokenTransferError):
        return True
    return broken is not None and (type(exc) is TransferFailedError or isinstance(exc, LeasedError))


def _can_resume(broken: BrokenTransferError | None) -> bool:
    """Whether the rest can be requested: a whole body has an ETag, and some of it is here. A selection is fetched anew."""
    if broken is None or broken.buffer is None or broken.headers is None:
        return False
    return broken.received > 0 and bool(broken.headers.get("etag"))


def _rest_check(plan: FetchPlan, broken: BrokenTransferError) -> HeadCheck:
    """The check of a resumed response's head: the missing bytes of the same representation, or an error."""
    size = memoryview(broken.buffer).nbytes
    expected = f"bytes {broken.received}-{size - 1}/{size}"

    def check(status: int, headers: Headers) -> None:
        if status == 206:
            if headers.get("content-range") != expected or headers.get(wire.H_VERSION) != wire.WIRE_VERSION:
                raise BadBodyError("The rest of the body is not what was missing.", hint=AGAIN)
        elif status == 200:
            raise BadBodyError("The body changed while it was fetched.", hint=AGAIN)
        else:
            plan.check_head(status, headers)

    return check
