"""BodyStore: the contract between a data plane and the store of its bodies."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from framewire.store._body import Body, Representation
from framewire.store._budget import Reservation, Stats


class BodyStore(Protocol):
    """Keeps published bodies until they end, and says which fetches of a limited one may go on.

    ``framewire.testing.store.BodyStoreTests`` checks all of this:

    *Bytes.* An open entry gives the bytes that were put, unaltered, whatever happens to its handle while it is open.

    *Tokens.* ``put`` returns a secret of the wire's form, never the same twice. A string that is not a token of this store is
    an ``InvalidTokenError`` everywhere.

    *Ends.* A handle ends ``ttl_seconds`` after its ``put``, at ``revoke``, or once ``max_uses`` uses count, whichever is first.
    From then on ``open`` and ``revoke`` raise ``ExpiredError``, ``RevokedError`` or ``SpentError``, whose hint names the body's
    tool; a sweep forgets the handle after one more ``ttl_seconds``. A limited handle that has ended can still be opened while one
    of its leases is out, so that a broken transfer can be resumed, and acknowledged until it is forgotten.

    *Budget.* Held and reserved bytes never exceed ``budget_bytes``. A body counts until its handle has ended and no entry of it
    is open. ``reserve`` gives up ended bodies before it refuses. After any error the counts are as before the call.

    *Leases.* Each handle with ``max_uses=N`` follows the tables of ``framewire.store._leases``: leases that are out and uses that
    count are at most N together, 3N+3 leases are granted at most, and one that is idle for 30 s gives its use back.

    *Threads.* Every method, of entries, leases and reservations too, may be called from any thread at any time. ``open``,
    ``lease``, ``revoke``, ``acknowledge`` and the methods of a lease are called on the server's event loop: they must not wait
    for I/O. All others may block.
    """

    def reserve(self, nbytes: int, *, spill: bool = False) -> Reservation:
        """Promise ``nbytes`` of memory, or of disk where ``spill`` allows it and memory cannot hold them.

        The promise is a context manager that gives the bytes back unless a body took them over.

        Raises:
            NoRoomError: They exceed the budget; the message says what uses it.
            LifecycleError: The store is closed.
        """
        ...

    def put(self, body: Body, reservation: Reservation, *, ttl_seconds: float, max_uses: int | None = None) -> str:
        """Keep ``body`` and return its token.

        Args:
            body: Written to ``reservation.storage``.
            reservation: Of this store, still open. It is resized to ``body.nbytes`` and taken over.
            ttl_seconds: Life of the handle.
            max_uses: Uses that may count, 1 or more; any number of fetches when None.

        Raises:
            NoRoomError: The body is larger than its reservation and exceeds the budget.
            SettingError: ``max_uses`` is below 1.
            LifecycleError: The store is closed.
        """
        ...

    def open(self, token: str) -> AbstractContextManager[Entry]:
        """Open the body behind ``token`` for reading. Its bytes stay until the context ends, whatever happens to the handle.

        Raises:
            InvalidTokenError: The handle is unknown, or has ended (its subclasses).
        """
        ...

    def acknowledge(self, token: str, lease: str, rows: int, checksum: str) -> bool:
        """Count one use. Returns whether it counts by this call; False when it counted before.

        Args:
            token: Of a limited handle, ended or not.
            lease: Id of the lease that the body was sent under.
            rows: Rows of the answer, as announced.
            checksum: Its checksum, as announced.

        Raises:
            InvalidTokenError: The handle is unknown.
            ArgumentError: The handle has no limit, there is no such lease, or another answer was announced.
            LeasedError, SpentError: The lease lapsed and its use is taken.
        """
        ...

    def revoke(self, token: str) -> None:
        """End the handle now; open entries and leases that are out may finish.

        Raises:
            InvalidTokenError: The handle is unknown, or has ended (its subclasses).
        """
        ...

    def sweep(self) -> float | None:
        """Drop whatever has ended. Returns the seconds until the next end, or None when nothing is waiting to end."""
        ...

    def stats(self) -> Stats:
        """Count what is held now."""
        ...

    def close(self) -> None:
        """Drop every body; those being read stay until they are closed. May be called again.

        Afterwards ``reserve`` and ``put`` raise ``LifecycleError``, and every token is unknown.
        """
        ...


class Entry(Protocol):
    """An open body. Valid until the context that gave it ends."""

    @property
    def body(self) -> Body:
        """The published table and its stored stream."""
        ...

    @property
    def is_limited(self) -> bool:
        """Whether the handle was published with ``max_uses``: it may only be sent under a lease then."""
        ...

    def form(self, *, views: bool, codec: str | None = None) -> Representation:
        """The whole body in a form that the client reads: the same rows, and the same bytes whenever it is asked for.

        Args:
            views: Whether string and binary views may stay; ``large_string`` and ``large_binary`` otherwise.
            codec: ``zstd`` or ``lz4`` where it pays, or None.

        Raises:
            NoRoomError: The budget cannot hold the form.
        """
        ...

    def lease(self, lease_id: str | None) -> ActiveLease | None:
        """Take a use of a limited handle; None for a handle without a limit.

        Args:
            lease_id: None for a new lease, or the id of one to resume.

        Raises:
            LeasedError: Every use that is left is out; ``details["retry_after_seconds"]`` says when one may be free.
            SpentError: No use is left, or the lease to resume was acknowledged.
            ExpiredError, RevokedError: The handle has ended; a lease that is out may still be resumed.
            ArgumentError: There is no such lease.
        """
        ...


class ActiveLease(Protocol):
    """The lease of one fetch while its answer is sent."""

    @property
    def id(self) -> str:
        """The id, which the client must name to resume or acknowledge: 128 random bits."""
        ...

    def announce(self, rows: int, checksum: str) -> None:
        """Note the rows and checksum in the head of the answer, which an acknowledgement must repeat."""
        ...

    def touch(self) -> None:
        """Note that bytes are about to move, so that the lease does not lapse.

        Raises:
            LeasedError, SpentError, ExpiredError, RevokedError: The lease lapsed and cannot be taken again: the transfer must
                break.
        """
        ...

    def finish(self) -> None:
        """Count the use: the answer went whole to a client that cannot acknowledge.

        Raises:
            LeasedError, SpentError: The lease lapsed and its use is taken.
        """
        ...
