"""One fetch from its arguments to its table: which requests in which order, without I/O.

``Job.steps`` is a generator. It yields requests and pauses; the shells of ``framewire.fetch`` carry them out, blocking or not,
and send the answers back or throw the errors in. So both shells follow one set of rules.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

from framewire import wire
from framewire.arrow import write
from framewire.client._call import Answer, Ask, Call, HeadCheck, HeaderView, RawHeaders
from framewire.client._exchange import BrokenTransferError
from framewire.client._legacy import LegacyPlan
from framewire.client._plan import AGAIN, FetchPlan, NotMappableError, WirePlan, error_of
from framewire.client._policy import PeerPolicy, refusal
from framewire.client._pool import Peer
from framewire.client._proof import MAX_PROOF_BYTES, Proof, Proven
from framewire.errors import (
    BadBodyError,
    LeasedError,
    S2SPError,
    SelectionError,
    TooLargeError,
    TransferFailedError,
    TransferTimeoutError,
)
from framewire.selection import RowSpec, parse_columns, parse_row_ids, resolve_rows
from framewire.settings import Settings
from framewire.typing import RowIds

logger = logging.getLogger(__name__)

_PROVEN: Final = Proven()
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


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


Steps: TypeAlias = Generator[Call | Pause, Answer, Any]


class Job:
    """One fetch, its arguments checked and its target allowed. Arguments as in :func:`framewire.fetch`."""

    def __init__(
        self,
        resource_url: str,
        row_ids: RowIds | RowSpec | None,
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
        # Of a handle of limited use: the lease that every further request of this fetch sends back.
        self._lease: str | None = None

    def steps(self) -> Steps:
        """The whole fetch; returns the table."""
        yield from self._prove()
        if self.target.is_legacy and self.rows is not None and self.rows.is_empty:
            # It cannot be asked for no rows (it would answer with all), so nothing but the id is known.
            return _ROW_ID_SCHEMA.empty_table()
        try:
            got, table = yield from self._whole()
        except TooLargeError as exc:
            tables = []
            for part in self._parts(exc):
                got, table = yield from self._exchange(self._plan(part))
                tables.append(table)
            table = pa.concat_tables(tables)
        yield from self._acknowledge(got)
        return table

    # --- trust --------------------------------------------------------------------------------------------------------

    def _prove(self) -> Steps:
        """Challenge a peer that only the registry allows, before it is sent the token."""
        registration = self.target.registration
        if registration is None:
            return
        if not _PROVEN.knows(registration):
            proof = Proof(registration)
            got = yield self._call(proof.request(), MAX_PROOF_BYTES)
            if not proof.holds(got.status, bytes(got.body)):
                raise refusal()
            _PROVEN.add(registration)
        self.target = replace(self.target, trusted=True)

    # --- the selection, whole or in parts -----------------------------------------------------------------------------

    def _whole(self) -> Steps:
        own = self.target.trusted and not self.target.is_legacy and self.settings.same_host == "auto"
        if own and self.rows is None:
            try:
                plan = WirePlan(self.target, None, self.columns, self.settings, may_map=True)
                return (yield from self._exchange(plan))
            except NotMappableError:
                pass  # Any doubt about a mapping is settled by sending the bytes.
        return (yield from self._exchange(self._plan(self.rows)))

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

    # --- one exchange, taken up again where it broke off --------------------------------------------------------------

    def _exchange(self, plan: FetchPlan) -> Steps:
        broken: BrokenTransferError | None = None
        failures = 0
        hasher = write.new_hasher()
        while True:
            try:
                call = self._request(plan, broken)
                if call.into is None:
                    hasher = write.new_hasher()
                call.hasher = hasher
                got = yield call
                if broken is not None and got.status == 206:
                    got = Answer(200, broken.headers or got.headers, broken.buffer, got.hashed)
                self._lease = got.headers.get(wire.H_LEASE, self._lease)
                checksum = write.checksum_text(hasher) if got.hashed else None
                return got, plan.finish(got.status, got.headers, got.body, checksum)
            except TransferTimeoutError:
                if broken is None:
                    raise
                # What went wrong is that it broke off; that there was no time left to mend it is the lesser news.
                raise broken from None
            except (BrokenTransferError, LeasedError, TransferFailedError) as exc:
                if self.target.is_legacy or not self._may_go_on(exc, broken):
                    raise
                moved = isinstance(exc, BrokenTransferError) and exc.received > 0 and _can_resume(broken or exc)
                failures = 0 if moved else failures + 1
                if failures >= _TRIES_WITHOUT_PROGRESS and not isinstance(exc, LeasedError):
                    raise
                pause = min(_FIRST_PAUSE_SECONDS * 2**failures, _MAX_PAUSE_SECONDS)
                if time.monotonic() + pause >= self.deadline:
                    raise
                broken = _joined(broken, exc)
                if broken.headers is not None:
                    self._lease = broken.headers.get(wire.H_LEASE, self._lease)
            yield Pause(pause)

    def _may_go_on(self, exc: S2SPError, broken: BrokenTransferError | None) -> bool:
        """A transfer that broke off goes on; once it has, so it does when the server is away or its lease is still out."""
        if isinstance(exc, BrokenTransferError):
            return True
        return broken is not None and (type(exc) is TransferFailedError or isinstance(exc, LeasedError))

    def _request(self, plan: FetchPlan, broken: BrokenTransferError | None) -> Call:
        ask = plan.request()
        if broken is None or broken.headers is None or not _can_resume(broken):
            return self._call(ask, self.settings.max_body_bytes, plan.check_head)
        rest = ((b"Range", b"bytes=%d-" % broken.received), (b"If-Range", broken.headers["etag"].encode("latin-1")))
        call = self._call(ask, self.settings.max_body_bytes, _rest_check(plan, broken), rest)
        call.into = memoryview(broken.buffer).cast("B")[broken.received :]
        return call

    def _call(self, ask: Ask, max_bytes: int, check_head: HeadCheck | None = None, more: RawHeaders = ()) -> Call:
        """``ask`` to the target, under the fetch's lease where there is one."""
        target = self.target
        if self._lease is not None:
            more = (*more, (wire.H_LEASE.encode(), self._lease.encode("latin-1")))
        return Call(
            ask.method,
            (target.path if ask.path is None else ask.path).encode("ascii"),
            ((b"Host", target.authority.encode("ascii")), *ask.headers, *more),
            ask.content,
            Peer(target.scheme, target.host, target.port, target.address),
            self.deadline,
            max_bytes,
            check_head,
        )

    # --- uses ---------------------------------------------------------------------------------------------------------

    def _acknowledge(self, got: Answer) -> Steps:
        """Tell the server of a handle of limited use that its body is here.

        Raises:
            LeasedError, SpentError: The lease had lapsed, and somebody else has the use: the body must not be used.
        """
        if self._lease is None:
            return
        note = {"ack": self._lease, "rows": int(got.headers[wire.H_ROWS]), "checksum": got.headers[wire.H_CHECKSUM]}
        for attempt in range(_TRIES_WITHOUT_PROGRESS):
            ask = Ask("POST", _ACK_HEADERS, json.dumps(note).encode())
            try:
                answer = yield self._call(ask, MAX_PROOF_BYTES)
            except (TransferFailedError, TransferTimeoutError):
                if time.monotonic() >= self.deadline:
                    break
                yield Pause(min(_FIRST_PAUSE_SECONDS * 2**attempt, _MAX_PAUSE_SECONDS))
                continue
            if answer.status != 200:
                raise error_of(answer.status, answer.body)
            return
        # The body is whole, and whether the server heard of it cannot be known: it is not thrown away for that.
        logger.warning("A use of a resource_url could not be acknowledged; its server may count it as not delivered.")


def _can_resume(broken: BrokenTransferError) -> bool:
    """Whether the rest can be asked for: a whole body has an ETag, and some of it is here. A selection is fetched anew."""
    return broken.buffer is not None and broken.received > 0 and bool(broken.headers and broken.headers.get("etag"))


def _joined(before: BrokenTransferError | None, exc: S2SPError) -> BrokenTransferError:
    """What there is of a body after another attempt: a resumed part adds to what had come."""
    if not isinstance(exc, BrokenTransferError):
        assert before is not None
        return before
    if exc.buffer is None and before is not None and before.buffer is not None:
        # A resumed part was being put into the buffer that is there; its own head is that of the part.
        before.received += exc.received
        return before
    return exc


def _rest_check(plan: FetchPlan, broken: BrokenTransferError) -> HeadCheck:
    """The head of a resumed answer: the missing bytes of the same representation, or an error; never a splice of two."""
    size = memoryview(broken.buffer).nbytes
    expected = f"bytes {broken.received}-{size - 1}/{size}"

    def check(status: int, headers: HeaderView) -> None:
        if status == 206:
            if headers.get("content-range") != expected or headers.get(wire.H_VERSION) != wire.WIRE_VERSION:
                raise BadBodyError("The rest of the body is not what was missing.", hint=AGAIN)
        elif status == 200:
            raise BadBodyError("The body changed while it was fetched.", hint=AGAIN)
        else:
            plan.check_head(status, headers)

    return check
