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
from framewire.store._leases import Uses
from framewire.store._place import Heap, Place
from framewire.store._room import Reservation, Room, Stats


@dataclass
class Entry:
    """A body while it is open for reading.

    Attributes:
        body: The published table.
        uses: Leases of a handle of limited use; None where it may be fetched any number of times.
    """

    key: bytes
    body: Body
    room: Room
    memory: Room
    ends_at: float
    ttl_seconds: float
    kept_bytes: int
    uses: Uses | None = None
    form_bytes: int = 0
    readers: int = 0
    ended: bool = False
    revoked: bool = False
    # By views and codec; None where the codec does not pay.
    _forms: dict[tuple[bool, str | None], Representation | None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def form(self, *, views: bool, codec: str | None = None) -> Representation:
        """The whole body in the form that a client reads, made on first use and kept with it. See ``BodyStore.open``."""
        views = views or not self.body.has_views
        if views and codec is None:
            return self.body.stored
        with self.lock:
            if (views, codec) not in self._forms:
                with self.memory.reserve(2 * self.body.nbytes) as reservation:
                    made = self.body.build(views=views, codec=codec)
                    reservation.resize(0 if made is None else int(made.buffer.size))
                    self.form_bytes += reservation.keep()
                    self._forms[views, codec] = made
            made = self._forms[views, codec]
        return made if made is not None else self.form(views=views)


@dataclass(frozen=True)
class _Tombstone:
    error: type[InvalidTokenError]
    tool: str
    forget_at: float
    # Kept for acknowledgements that come late or twice.
    uses: Uses | None = None


class Hold:
    """One fetch's lease of a limited handle, while its answer is sent. Thread-safe; errors as in :class:`Uses`.

    Attributes:
        lease: Its id, for the client.
    """

    def __init__(self, store: MemoryStore, entry: Entry, uses: Uses, lease: str) -> None:
        self.lease = lease
        self._store, self._entry, self._uses = store, entry, uses

    def announce(self, rows: int, checksum: str) -> None:
        """What the head of the answer says, and an acknowledgement must repeat."""
        with self._store._lock:
            self._uses.announce(self.lease, rows, checksum)

    def touch(self) -> None:
        """Bytes are about to move. Raises when the lease has lapsed and its use is gone: the transfer must break."""
        with self._store._lock:
            self._uses.touch(self.lease, self._store._clock())

    def finish(self) -> None:
        """The answer goes whole to a client that cannot acknowledge: its use counts."""
        with self._store._lock:
            self._uses.finish(self.lease, self._store._clock())
            self._store._reconsider(self._entry)


class MemoryStore:
    """Bodies in memory under one budget, and on disk under another. See :class:`framewire.store.BodyStore` for the methods.

    Args:
        budget_bytes: Most bytes in memory: bodies and selections under way.
        place: Where bodies in memory are kept; the heap by default.
        disk: Where bodies go that memory has no room for; nowhere by default.
        disk_budget_bytes: Most bytes there.
        clock: Monotonic seconds; replaceable in tests.
    """

    def __init__(
        self,
        budget_bytes: int,
        *,
        place: Place | None = None,
        disk: Place | None = None,
        disk_budget_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room = Room(budget_bytes, place or Heap(), setting="FRAMEWIRE_MEMORY_BUDGET_BYTES")
        self._spill = None if disk is None else Room(disk_budget_bytes, disk, setting="FRAMEWIRE_DISK_BUDGET_BYTES")
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[bytes, Entry] = {}
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
            return self._room.reserve(nbytes)
        except NoRoomError:
            if not spill or self._spill is None:
                raise
        return self._spill.reserve(nbytes)

    def put(self, body: Body, reservation: Reservation, *, ttl_seconds: float, max_uses: int | None = None) -> str:
        """See ``BodyStore.put``."""
        reservation.resize(body.nbytes)
        token = new_token()
        ends_at = self._clock() + ttl_seconds
        uses = None if max_uses is None else Uses(max_uses, ends_at=ends_at, call_again=_call_again(body.tool))
        entry = Entry(token_hash(token), body, reservation.room, self._room, ends_at, ttl_seconds, body.nbytes, uses)
        with self._lock:
            self._check_open()
            self._entries[entry.key] = entry
            heapq.heappush(self._ends, (entry.ends_at, entry.key))
            reservation.keep()
        return token

    @contextmanager
    def open(self, token: str) -> Iterator[Entry]:
        """See ``BodyStore.open``."""
        key = token_hash(token)
        with self._lock:
            entry = self._find(key)
            entry.readers += 1
            self._readers += 1
        try:
            yield entry
        finally:
            with self._lock:
                entry.readers -= 1
                self._readers -= 1
                self._settle(entry)

    def hold(self, entry: Entry, lease: str | None) -> Hold | None:
        """See ``BodyStore.hold``."""
        uses = entry.uses
        if uses is None:
            return None
        with self._lock:
            if lease is None:
                lease = uses.acquire(self._clock())
            else:
                uses.resume(lease, self._clock())
            return Hold(self, entry, uses, lease)

    def acknowledge(self, token: str, lease: str, rows: int, checksum: str) -> bool:
        """See ``BodyStore.acknowledge``."""
        key = token_hash(token)
        with self._lock:
            entry, stone = self._entries.get(key), self._tombstones.get(key)
            found = entry or stone
            if found is None:
                raise _unknown_handle()
            if found.uses is None:
                raise ArgumentError(
                    "Fetches of this resource_url are not counted.", hint="Acknowledge only answers with S2SP-Lease."
                )
            counts = found.uses.acknowledge(lease, rows, checksum, self._clock())
            if entry is not None:
                self._reconsider(entry)
            return counts

    def revoke(self, token: str) -> None:
        """See ``BodyStore.revoke``."""
        key = token_hash(token)
        with self._lock:
            entry = self._find(key)
            if entry.uses is None:
                self._end(key, RevokedError)
                return
            entry.uses.revoke()
            entry.revoked = True
            self._reconsider(entry)

    def sweep(self) -> float | None:
        """See ``BodyStore.sweep``."""
        now = self._clock()
        with self._lock:
            while self._ends and self._ends[0][0] <= now:
                _, key = heapq.heappop(self._ends)
                entry = self._entries.get(key)
                if entry is not None and (entry.ends_at <= now or entry.revoked):
                    self._reconsider(entry)
                elif key in self._tombstones and self._tombstones[key].forget_at <= now:
                    del self._tombstones[key]
            return max(self._ends[0][0] - now, 0.0) if self._ends else None

    def stats(self) -> Stats:
        """See ``BodyStore.stats``."""
        with self._lock:
            return Stats(
                bodies=len(self._entries),
                held_bytes=self._room.held_bytes,
                reserved_bytes=self._room.reserved_bytes,
                budget_bytes=self._room.budget_bytes,
                readers=self._readers,
                spilled_bytes=self._spill.held_bytes if self._spill else 0,
            )

    def close(self) -> None:
        """See ``BodyStore.close``."""
        with self._lock:
            self._closed = True
            for key in list(self._entries):
                self._end(key, RevokedError)
            self._tombstones.clear()
            self._ends.clear()

    # --- under self._lock ---------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise LifecycleError("The data plane is stopped.", hint="Publish on a running data plane.")

    def _find(self, key: bytes) -> Entry:
        entry = self._entries.get(key)
        if entry is not None and entry.ends_at <= self._clock():
            self._reconsider(entry)
            entry = self._entries.get(key)
        if entry is not None:
            return entry
        stone = self._tombstones.get(key)
        if stone is None:
            raise _unknown_handle()
        raise stone.error(f"The resource_url {_ENDINGS[stone.error]}.", hint=_call_again(stone.tool))

    def _reconsider(self, entry: Entry) -> None:
        """End the entry if nothing of it can be asked for any more; one with leases out waits for them."""
        now, uses = self._clock(), entry.uses
        if entry.key not in self._entries:
            return
        if uses is None or uses.is_over(now):
            spent = uses is not None and uses.counted == uses.max_uses
            late = entry.ends_at <= now
            self._end(
                entry.key,
                SpentError if spent else RevokedError if entry.revoked else ExpiredError if late else SpentError,
            )
        elif entry.ends_at <= now or entry.revoked:
            heapq.heappush(self._ends, (uses.next_lapse(now) or now, entry.key))

    def _end(self, key: bytes, error: type[InvalidTokenError]) -> None:
        entry = self._entries.pop(key)
        entry.ended = True
        # Remembered for one more lifetime, so that a late fetch hears why and what to call, instead of "unknown".
        stone = _Tombstone(error, entry.body.tool, self._clock() + entry.ttl_seconds, entry.uses)
        self._tombstones[key] = stone
        heapq.heappush(self._ends, (stone.forget_at, key))
        self._settle(entry)

    def _settle(self, entry: Entry) -> None:
        if entry.ended and not entry.readers and entry.kept_bytes:
            entry.room.release(entry.kept_bytes)
            self._room.release(entry.form_bytes)
            entry.kept_bytes = entry.form_bytes = 0
            entry.body.kept.close()


_ENDINGS: Final[dict[type[InvalidTokenError], str]] = {
    ExpiredError: "has expired",
    RevokedError: "was revoked",
    SpentError: "was used as often as it may be",
}


def _unknown_handle() -> InvalidTokenError:
    return InvalidTokenError("The resource_url is unknown to its server.", hint=_call_again(""))


def _call_again(tool: str) -> str:
    return f"Call the tool {tool!r} again for a fresh one." if tool else "Call the resource tool again for a fresh one."
