"""Where bodies live between a publish and the fetches: the ``BodyStore`` protocol and its stores.

A store owns room (bytes reserved before they exist), time (handles end on a monotonic clock, without being asked) and tokens
(kept hashed). It knows neither HTTP nor MCP. ``MemoryStore`` is the one in use; others (a shared folder, an object store) can
stand in its place.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from framewire.store._body import Body, Representation
from framewire.store._memory import Entry, Hold, MemoryStore
from framewire.store._place import Disk, Heap, Kept, Place, SealedMemory
from framewire.store._room import Reservation, Room, Stats

__all__ = [
    "Body",
    "BodyStore",
    "Disk",
    "Entry",
    "Heap",
    "Hold",
    "Kept",
    "MemoryStore",
    "Place",
    "Representation",
    "Reservation",
    "Room",
    "SealedMemory",
    "Stats",
]


class BodyStore(Protocol):
    """A place for bodies. Every method is thread-safe and may block; none may be called on an event loop but ``open``."""

    def reserve(self, nbytes: int, *, spill: bool = False) -> Reservation:
        """Promise ``nbytes`` of memory, or of disk where ``spill`` allows it and memory has no room.

        The promise is a context manager that gives the bytes back unless a body took them over.

        Raises:
            NoRoomError: The budget cannot hold them; the message says what does.
        """
        ...

    def put(self, body: Body, reservation: Reservation, *, ttl_seconds: float, max_uses: int | None = None) -> str:
        """Keep ``body`` in the reserved room and return its token, which is stored only as a hash."""
        ...

    def hold(self, entry: Entry, lease: str | None) -> Hold | None:
        """Lease a use of a limited handle, or take up a lease again; None for handles without a limit.

        Raises:
            LeasedError, SpentError, ExpiredError, RevokedError: No use is free, now or for good.
        """
        ...

    def acknowledge(self, token: str, lease: str, rows: int, checksum: str) -> bool:
        """Count one use. Returns whether it counts by this call.

        Raises:
            InvalidTokenError: The handle is unknown.
            ArgumentError: No such lease, or it was sent something else.
            LeasedError, SpentError: The lease lapsed and its use is gone.
        """
        ...

    def open(self, token: str) -> AbstractContextManager[Entry]:
        """The entry behind ``token``: its ``body``, and ``form(views=, codec=)``, the whole body in the form that a client
        reads (may raise ``NoRoomError``).

        While it is open it is not evicted, even past its end.

        Raises:
            InvalidTokenError: The handle is unknown (``expired`` and ``revoked`` are remembered for one TTL).
        """
        ...

    def revoke(self, token: str) -> None:
        """End the handle now; running transfers finish.

        Raises:
            InvalidTokenError: The handle is unknown.
        """
        ...

    def sweep(self) -> float | None:
        """Drop what has ended. Returns seconds until the next end, or None when nothing waits."""
        ...

    def stats(self) -> Stats:
        """What is held now."""
        ...

    def close(self) -> None:
        """Drop everything; later calls raise ``LifecycleError``."""
        ...
