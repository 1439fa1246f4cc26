"""MemoryStore: the bodies of one process, in memory and, above a budget, on disk."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from framewire.errors import (
    ArgumentError,
    ExpiredError,
    InvalidTokenError,
    LifecycleError,
    NoRoomError,
    RevokedError,
    SpentError,
)
from framewire.handle import new_token, token_hash
from framewire.store._body import Body, Representation
from framewire.store._budget import Budget, Reservation, Stats
from framewire.store._leases import LeaseBook
from framewire.store._storage import Heap, Storage


@dataclass
class _Record:
    """A body, its handle, and the bytes that are charged for it. Read and changed under the store's lock, but for its forms."""

    key: bytes
    body: Body
    budget: Budget
    ends_at: float
    ttl_seconds: float
    held_bytes: int
    book: LeaseBook | None
    readers: int = 0
    ended: bool = False
    revoked: bool = False
    form_bytes: int = 0
    # By views and codec; None where the codec does not pay.
    forms: dict[tuple[bool, str | None], Representation | None] = field(default_factory=dict)
    forms_lock: threading.Lock = field(default_factory=threading.Lock)


class _OpenEntry:
    """See ``Entry``."""

    def __init__(self, store: MemoryStore, record: _Record) -> None:
        self.body = record.body
        self.is_limited = record.book is not None
        self._store, self._record = store, record

    def form(self, *, views: bool, codec: str | None = None) -> Representation:
        """See ``Entry.form``. Built on first use and kept with the body."""
        record = self._record
        views = views or not self.body.has_views
        if views and codec is None:
            return self.body.stored
        with record.forms_lock:
            if (views, codec) not in record.forms:
                with self._store._memory.reserve(2 * self.body.nbytes) as reservation:
                    built = self.body.build(views=views, codec=codec)
                    reservation.resize(0 if built is None else int(built.buffer.size))
                    record.form_bytes += reservation.keep()
                    record.forms[views, codec] = built
            form = record.forms[views, codec]
        return form if form is not None else self.form(views=views)

    def lease(self, lease_id: str | None) -> _ActiveLease | None:
        """See ``Entry.lease``."""
        store, book = self._store, self._record.book
        if book is None:
            return None
        with store._lock:
            if lease_id is None:
                lease_id = book.acquire(store._clock())
            else:
                book.resume(lease_id, store._clock())
        return _ActiveLease(store, self._record, book, lease_id)


class _ActiveLease:
    """See ``ActiveLease``; errors as in :class:`LeaseBook`."""

    def __init__(self, store: MemoryStore, record: _Record, book: LeaseBook, lease_id: str) -> None:
        self.id = lease_id
        self._store, self._record, self._book = store, record, book

    def announce(self, rows: int, checksum: str) -> None:
        """See ``ActiveLease.announce``."""
        with self._store._lock:
            self._book.announce(self.id, rows, checksum)

    def touch(self) -> None:
        """See ``ActiveLease.touch``."""
        with self._store._lock:
            self._book.touch(self.id, self._store._clock())

    def finish(self) -> None:
        """See ``ActiveLease.finish``."""
        with self._store._lock:
            self._book.finish(self.id, self._store._clock())
            self._store._reconsider(self._record)


@dataclass(frozen=True)
class _Tombstone:
    error: type[InvalidTokenError]
    tool: str
    forget_at: float
    # Kept for acknowledgements that come late or twice.
    book: LeaseBook | None


class MemoryStore:
    """Bodies in memory under one budget, and on disk under another. See ``BodyStore`` for the methods.

    Args:
        budget_bytes: Limit of bytes in memory: bodies, their other forms, and selections under way.
        storage: Where bodies in memory are written; the heap by default.
        disk: Where bodies go that the budget cannot hold; they are refused by default.
        disk_budget_bytes: Limit of bytes there.
        clock: Monotonic seconds; replaceable in tests.
    """

    def __init__(
        self,
        budget_bytes: int,
        *,
        storage: Storage | None = None,
        disk: Storage | None = None,
        disk_budget_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory = Budget(budget_bytes, storage or Heap(), setting="FRAMEWIRE_MEMORY_BUDGET_BYTES")
        self._spill = None if disk is None else Budget(disk_budget_bytes, disk, setting="FRAMEWIRE_DISK_BUDGET_BYTES")
        self._clock = clock
        self._lock = threading.Lock()
        self._records: dict[bytes, _Record] = {}
        self._tombstones: dict[bytes, _Tombstone] = {}
        # When something ends, soonest first; entries that ended otherwise are skipped when their turn comes.
        self._ends: list[tuple[float, bytes]] = []
        self._readers = 0
        self._closed = False

    def reserve(self, nbytes: int, *, spill: bool = False) -> Reservation:
        """See ``BodyStore.reserve``."""
        self._check_open()
        self.sweep()
        try:
            return self._memory.reserve(nbytes)
        except NoRoomError:
            if not spill or self._spill is None:
                raise
        return self._spill.reserve(nbytes)

    def put(self, body: Body, reservation: Reservation, *, ttl_seconds: float, max_uses: int | None = None) -> str:
        """See ``BodyStore.put``."""
        reservation.resize(body.nbytes)
        token = new_token()
        ends_at = self._clock() + ttl_seconds
        book = None if max_uses is None else LeaseBook(max_uses, ends_at=ends_at, call_again=_call_again(body.tool))
        record = _Record(token_hash(token), body, reservation.budget, ends_at, ttl_seconds, body.nbytes, book)
        with self._lock:
            self._check_open()
            self._records[record.key] = record
            heapq.heappush(self._ends, (record.ends_at, record.key))
            reservation.keep()
        return token

    @contextmanager
    def open(self, token: str) -> Iterator[_OpenEntry]:
        """See ``BodyStore.open``."""
        key = token_hash(token)
        with self._lock:
            record = self._find(key)
            record.readers += 1
            self._readers += 1
        try:
            yield _OpenEntry(self, record)
        finally:
            with self._lock:
                record.readers -= 1
                self._readers -= 1
                self._settle(record)

    def acknowledge(self, token: str, lease: str, rows: int, checksum: str) -> bool:
        """See ``BodyStore.acknowledge``."""
        key = token_hash(token)
        with self._lock:
            record = self._records.get(key)
            handle = record or self._tombstones.get(key)
            if handle is None:
                raise _unknown_handle()
            if handle.book is None:
                raise ArgumentError(
                    "Fetches of this resource_url are not counted.", hint="Acknowledge only answers with S2SP-Lease."
                )
            counts = handle.book.acknowledge(lease, rows, checksum, self._clock())
            if record is not None:
                self._reconsider(record)
            return counts

    def revoke(self, token: str) -> None:
        """See ``BodyStore.revoke``."""
        key = token_hash(token)
        with self._lock:
            record = self._find(key)
            if record.book is None:
                self._end(key, RevokedError)
                return
            record.book.revoke()
            record.revoked = True
            self._reconsider(record)

    def sweep(self) -> float | None:
        """See ``BodyStore.sweep``."""
        now = self._clock()
        with self._lock:
            while self._ends and self._ends[0][0] <= now:
                _, key = heapq.heappop(self._ends)
                record = self._records.get(key)
                if record is not None and (record.ends_at <= now or record.revoked):
                    self._reconsider(record)
                elif key in self._tombstones and self._tombstones[key].forget_at <= now:
                    del self._tombstones[key]
            return max(self._ends[0][0] - now, 0.0) if self._ends else None

    def stats(self) -> Stats:
        """See ``BodyStore.stats``."""
        with self._lock:
            return Stats(
                bodies=len(self._records),
                held_bytes=self._memory.held_bytes,
                reserved_bytes=self._memory.reserved_bytes,
                budget_bytes=self._memory.budget_bytes,
                readers=self._readers,
                spilled_bytes=self._spill.held_bytes if self._spill else 0,
            )

    def close(self) -> None:
        """See ``BodyStore.close``."""
        with self._lock:
            self._closed = True
            for key in list(self._records):
                self._end(key, RevokedError)
            self._tombstones.clear()
            self._ends.clear()

    # --- under self._lock ---------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise LifecycleError("The data plane is stopped.", hint="Publish on a running data plane.")

    def _find(self, key: bytes) -> _Record:
        record = self._records.get(key)
        if record is not None and record.ends_at <= self._clock():
            self._reconsider(record)
            record = self._records.get(key)
        if record is not None:
            return record
        tombstone = self._tombstones.get(key)
        if tombstone is None:
            raise _unknown_handle()
        raise tombstone.error(f"The resource_url {_ENDINGS[tombstone.error]}.", hint=_call_again(tombstone.tool))

    def _reconsider(self, record: _Record) -> None:
        """End the handle if nothing of its body can be asked for any more; one with leases out waits for them."""
        now, book = self._clock(), record.book
        if record.key not in self._records:
            return
        if book is None or book.is_over(now):
            spent = book is not None and book.counted == book.max_uses
            late = record.ends_at <= now
            self._end(
                record.key,
                SpentError if spent else RevokedError if record.revoked else ExpiredError if late else SpentError,
            )
        elif record.ends_at <= now or record.revoked:
            heapq.heappush(self._ends, (book.next_lapse(now) or now, record.key))

    def _end(self, key: bytes, error: type[InvalidTokenError]) -> None:
        record = self._records.pop(key)
        record.ended = True
        # Remembered for one more lifetime, so that a late fetch is told why it fails and what to call, instead of "unknown".
        tombstone = _Tombstone(error, record.body.tool, self._clock() + record.ttl_seconds, record.book)
        self._tombstones[key] = tombstone
        heapq.heappush(self._ends, (tombstone.forget_at, key))
        self._settle(record)

    def _settle(self, record: _Record) -> None:
        if record.ended and not record.readers and record.held_bytes:
            record.budget.release(record.held_bytes)
            self._memory.release(record.form_bytes)
            record.held_bytes = record.form_bytes = 0
            record.body.stored_bytes.close()


_ENDINGS: Final[dict[type[InvalidTokenError], str]] = {
    ExpiredError: "has expired",
    RevokedError: "was revoked",
    SpentError: "has reached its limit of uses",
}


def _unknown_handle() -> InvalidTokenError:
    return InvalidTokenError("The resource_url is unknown to its server.", hint=_call_again(""))


def _call_again(tool: str) -> str:
    return f"Call the tool {tool!r} again for a fresh one." if tool else "Call the resource tool again for a fresh one."
