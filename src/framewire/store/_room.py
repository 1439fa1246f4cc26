"""Room: a budget of bytes, reserved before they are made."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType

from framewire.errors import NoRoomError
from framewire.store._place import Place


@dataclass(frozen=True)
class Stats:
    """What a store holds now.

    Attributes:
        bodies: Live handles.
        held_bytes: Bytes of bodies, those being read after their end included.
        reserved_bytes: Bytes promised to publishes and selections that are under way.
        budget_bytes: Most that both may come to.
        readers: Transfers under way.
        spilled_bytes: Bytes of bodies on disk.
    """

    bodies: int
    held_bytes: int
    reserved_bytes: int
    budget_bytes: int
    readers: int
    spilled_bytes: int = 0


class Room:
    """A thread-safe count of bytes against a budget.

    Attributes:
        budget_bytes: Most bytes held and reserved together.
        held_bytes: Bytes of what is kept.
        reserved_bytes: Bytes promised to work under way.
        place: Where a body that has this room is kept.
    """

    def __init__(self, budget_bytes: int, place: Place, *, setting: str) -> None:
        self.place = place
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self.reserved_bytes = 0
        self._setting = setting
        self._lock = threading.Lock()

    def reserve(self, nbytes: int) -> Reservation:
        """Promise ``nbytes``.

        Raises:
            NoRoomError: They do not fit; the message says what holds the room.
        """
        with self._lock:
            self._check(nbytes)
            self.reserved_bytes += nbytes
        return Reservation(self, nbytes)

    def _check(self, nbytes: int) -> None:
        if self.held_bytes + self.reserved_bytes + nbytes > self.budget_bytes:
            raise NoRoomError(
                f"No room for {nbytes} bytes: of {self.budget_bytes}, published bodies hold {self.held_bytes} and work under "
                f"way {self.reserved_bytes}.",
                hint=f"Wait for handles to expire, revoke some, publish less, or raise {self._setting}.",
            )

    def _resize(self, reservation: Reservation, nbytes: int) -> None:
        with self._lock:
            self._check(nbytes - reservation.nbytes)
            self.reserved_bytes += nbytes - reservation.nbytes
            reservation.nbytes = nbytes

    def _return(self, nbytes: int) -> None:
        with self._lock:
            self.reserved_bytes -= nbytes

    def _keep(self, nbytes: int) -> None:
        with self._lock:
            self.reserved_bytes -= nbytes
            self.held_bytes += nbytes

    def release(self, nbytes: int) -> None:
        """Give back bytes that were kept."""
        with self._lock:
            self.held_bytes -= nbytes


class Reservation:
    """Bytes promised by a :class:`Room`; given back on exit unless :meth:`keep` made them permanent."""

    def __init__(self, room: Room, nbytes: int) -> None:
        self.nbytes = nbytes
        self.room = room
        self._open = True

    @property
    def place(self) -> Place:
        """Where a body that takes this room is to be kept."""
        return self.room.place

    def resize(self, nbytes: int) -> None:
        """Change the promise once the true size is known.

        Raises:
            NoRoomError: It grew past the budget.
        """
        self.room._resize(self, nbytes)

    def keep(self) -> int:
        """Turn the promise into held bytes; the caller releases them later. Returns how many."""
        self._open = False
        self.room._keep(self.nbytes)
        return self.nbytes

    def close(self) -> None:
        """Give the bytes back, unless they were kept."""
        if self._open:
            self._open = False
            self.room._return(self.nbytes)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
