"""MemoryStore: the bodies of one process, in memory and, above a budget, on disk."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from framewire.errors import ExpiredError, InvalidTokenError, LifecycleError, NoRoomError, RevokedError
from framewire.handle import new_token, token_hash
from framewire.store._body import Body, Representation
from framewire.store._place import Heap, Place
from framewire.store._room import Reservation, Room, Stats


@dataclass
class Entry:
    """A body while it is open for reading.

    Attributes:
        body: The published table.
    """

    body: Body
    room: Room
    memory: Room
    ends_at: float
    ttl_seconds: float
    kept_bytes: int
    plain_bytes: int = 0
    readers: int = 0
    ended: bool = False
    _plain: Representation | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def plain(self) -> Representation:
        """The body without views, made on first use and kept with it. See ``BodyStore.open``."""
        with self.lock:
            if self._plain is None:
                with self.memory.reserve(self.body.nbytes) as reservation:
                    made = self.body.build_plain()
                    reservation.resize(int(made.buffer.size))
                    self.plain_bytes = reservation.keep()
                    self._plain = made
            return self._plain


@dataclass(frozen=True)
class _Tombstone:
    error: type[InvalidTokenError]
    tool: str
    forget_at: float


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

    def put(self, body: Body, reservation: Reservation, *, ttl_seconds: float) -> str:
        """See ``BodyStore.put``."""
        reservation.resize(body.nbytes)
        token = new_token()
        entry = Entry(body, reservation.room, self._room, self._clock() + ttl_seconds, ttl_seconds, body.nbytes)
        with self._lock:
            self._check_open()
            self._entries[token_hash(token)] = entry
            heapq.heappush(self._ends, (entry.ends_at, token_hash(token)))
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

    def revoke(self, token: str) -> None:
        """See ``BodyStore.revoke``."""
        key = token_hash(token)
        with self._lock:
            self._find(key)
            self._end(key, RevokedError)

    def sweep(self) -> float | None:
        """See ``BodyStore.sweep``."""
        now = self._clock()
        with self._lock:
            while self._ends and self._ends[0][0] <= now:
                _, key = heapq.heappop(self._ends)
                if key in self._entries and self._entries[key].ends_at <= now:
                    self._end(key, ExpiredError)
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
            self._end(key, ExpiredError)
            entry = None
        if entry is not None:
            return entry
        stone = self._tombstones.get(key)
        if stone is None:
            raise InvalidTokenError("The resource_url is unknown to its server.", hint=_call_again(""))
        what = "has expired" if stone.error is ExpiredError else "was revoked"
        raise stone.error(f"The resource_url {what}.", hint=_call_again(stone.tool))

    def _end(self, key: bytes, error: type[InvalidTokenError]) -> None:
        entry = self._entries.pop(key)
        entry.ended = True
        # Remembered for one more lifetime, so that a late fetch hears why and what to call, instead of "unknown".
        stone = _Tombstone(error, entry.body.tool, self._clock() + entry.ttl_seconds)
        self._tombstones[key] = stone
        heapq.heappush(self._ends, (stone.forget_at, key))
        self._settle(entry)

    def _settle(self, entry: Entry) -> None:
        if entry.ended and not entry.readers and entry.kept_bytes:
            entry.room.release(entry.kept_bytes)
            self._room.release(entry.plain_bytes)
            entry.kept_bytes = entry.plain_bytes = 0
            entry.body.kept.close()


def _call_again(tool: str) -> str:
    return f"Call the tool {tool!r} again for a fresh one." if tool else "Call the resource tool again for a fresh one."
