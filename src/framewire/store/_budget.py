"""Budget: a limit on bytes, which are reserved before they are made."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType

from framewire.errors import NoRoomError
from framewire.store._storage import Storage


@dataclass(frozen=True)
class Stats:
    """Counts of what a store holds now.

    Attributes:
        bodies: Live handles.
        held_bytes: Bytes of bodies, those being read after their end included.
        reserved_bytes: Bytes promised to publishes and selections that are under way.
        budget_bytes: Limit of both together.
        readers: Transfers under way.
        spilled_bytes: Bytes of bodies on disk.
    """

    bodies: int
    held_bytes: int
    reserved_bytes: int
    budget_bytes: int
    readers: int
    spilled_bytes: int = 0


class Budget:
    """A thread-safe count of bytes against a limit.

    Attributes:
        budget_bytes: Limit of the bytes held and reserved together.
        held_bytes: Bytes of bodies and of their other forms.
        reserved_bytes: Bytes promised to work under way.
        storage: Where bodies that are charged to this budget are written.

    Args:
        budget_bytes: As above.
        storage: As above.
        setting: Name of the setting that raises the limit, for the error's hint.
    """

    def __init__(self, budget_bytes: int, storage: Storage, *, setting: str) -> None:
        self.storage = storage
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self.reserved_bytes = 0
        self._setting = setting
        self._lock = threading.Lock()

    def reserve(self, nbytes: int) -> Reservation:
        """Promise ``nbytes``.

        Raises:
            NoRoomError: They exceed the budget; the message says what uses it.
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
    """Bytes promised by a :class:`Budget`; given back on exit unless :meth:`keep` made them permanent."""

    def __init__(self, budget: Budget, nbytes: int) -> None:
        self.nbytes = nbytes
        self.budget = budget
        self._open = True

    @property
    def storage(self) -> Storage:
        """Where the body that takes over this promise is to be written."""
        return self.budget.storage

    def resize(self, nbytes: int) -> None:
        """Change the promise once the true size is known.

        Raises:
            NoRoomError: It grew past the budget.
        """
        self.budget._resize(self, nbytes)

    def keep(self) -> int:
        """Turn the promise into held bytes; the caller releases them later. Returns how many."""
        self._open = False
        self.budget._keep(self.nbytes)
        return self.nbytes

    def close(self) -> None:
        """Give the bytes back, unless they were kept."""
        if self._open:
            self._open = False
            self.budget._return(self.nbytes)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
