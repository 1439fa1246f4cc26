r"""LeaseBook: which fetches of a handle with ``max_uses=N`` may go on, and which count.

A server cannot see delivery, so a use counts when the client acknowledges that it has the whole body. Until then the fetch
holds a use by a *lease*. A lease is in one of four states:

========  ===========  ============================================================================================
state     holds a use  meaning
========  ===========  ============================================================================================
out       yes          granted; its bytes may be moving
lapsed    no           no byte moved for 30 s: its use is free, for others or for itself
counted   for good     acknowledged, or sent whole to a client that cannot acknowledge
released  no           given up by the server before its answer was sent
========  ===========  ============================================================================================

Events and the states they lead to (``=`` is no change, ``free?`` is *out* or *counted* when a use is free, else an error):

=====================  ========  =======================  ===============  ========
event                  out       lapsed                   counted          released
=====================  ========  =======================  ===============  ========
30 s without a byte    lapsed    =                        =                =
touch (a byte moved)   =         free? then out           =                unknown
resume                 =         free? then out           spent            unknown
acknowledge, as sent   counted   free? then counted       = (said before)  unknown
acknowledge, other     error     error                    error            unknown
finish (sent whole)    counted   free? then counted       =                unknown
release                released  released                 =                =
=====================  ========  =======================  ===============  ========

A use is *free* while counted and out leases together are fewer than N. When none is, the error is ``spent`` if N are counted and
``leased`` while some are out. Out and counted are therefore never more than N together, and of any number of fetches of a
one-use handle exactly one is counted; a loser can still win when the winner lapses.

``acquire`` grants a lease, or raises the first of: ``revoked``; ``expired`` from the handle's end on; ``spent`` when N are counted;
``spent`` when 3N+3 leases were granted (so that a client which never acknowledges cannot fetch for ever); ``leased`` when no
use is free. Expiry and revocation refuse new leases and keep lapsed ones lapsed; leases that are out may finish, and an
acknowledgement may always come late.

Nothing here reads a clock, locks or does I/O: callers pass monotonic seconds and hold their own lock.
"""

from __future__ import annotations

import enum
import math
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from framewire.errors import ArgumentError, ExpiredError, LeasedError, RevokedError, SettingError, SpentError

LAPSE_SECONDS: Final = 30.0
"""A lease without a byte for so long gives its use back: longer than a broken client takes to come again."""


class State(enum.Enum):
    """Of a lease; see the module's tables."""

    OUT = "out"
    LAPSED = "lapsed"
    COUNTED = "counted"
    RELEASED = "released"


@dataclass
class _Lease:
    state: State = State.OUT
    announced: tuple[int, str] | None = None


class LeaseBook:
    """The leases of one limited handle.

    Args:
        max_uses: N: fetches that may count, 1 or more.
        ends_at: End of the handle, in seconds of the callers' clock.
        call_again: Hint of errors that only a fresh handle mends; names the tool.
        lapse_seconds: Time without a byte after which a lease lapses.
        new_id: Makes a lease's id, which a client must name to resume or acknowledge: 128 random bits.

    Attributes:
        max_uses: As given.
        max_leases: 3N+3: leases ever granted, at most.
        counted: Uses that count so far.
        granted: Leases granted so far.

    Raises:
        SettingError: ``max_uses`` is below 1.
    """

    def __init__(
        self,
        max_uses: int,
        *,
        ends_at: float = math.inf,
        call_again: str = "Call the resource tool again for a fresh one.",
        lapse_seconds: float = LAPSE_SECONDS,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        if max_uses < 1:
            raise SettingError(f"max_uses is {max_uses}.", hint="It takes 1 or more, or None for any number.")
        self.max_uses = max_uses
        self.max_leases = 3 * max_uses + 3
        self.counted = 0
        self._ends_at = ends_at
        self._call_again = call_again
        self._lapse_seconds = lapse_seconds
        self._new_id = new_id
        self._leases: dict[str, _Lease] = {}
        # Leases that are out, and when a byte of theirs moved last: the longest idle first.
        self._out: OrderedDict[str, float] = OrderedDict()
        self._revoked = False
        self._now = -math.inf

    # --- what callers ask -------------------------------------------------------------------------------------------------

    @property
    def granted(self) -> int:
        """Leases granted so far."""
        return len(self._leases)

    def out(self, now: float) -> int:
        """Leases that hold a use and do not count yet."""
        self._advance(now)
        return len(self._out)

    def state(self, lease: str, now: float) -> State:
        """Of one lease.

        Raises:
            ArgumentError: It was never granted.
        """
        self._advance(now)
        return self._find(lease).state

    def next_lapse(self, now: float) -> float | None:
        """When the next lease lapses, or None when none is out: when to ask :meth:`is_over` again."""
        self._advance(now)
        return None if not self._out else next(iter(self._out.values())) + self._lapse_seconds

    def is_over(self, now: float) -> bool:
        """True once no byte of the body can be asked for any more. Late acknowledgements may still come: keep this object."""
        self._advance(now)
        if self._out:
            return False
        return self.counted == self.max_uses or self._revoked or self._now >= self._ends_at or self._is_used_up()

    # --- what happens -----------------------------------------------------------------------------------------------------

    def acquire(self, now: float) -> str:
        """Grant a lease: the first byte of a fetch is about to move.

        Returns:
            Its id.

        Raises:
            RevokedError, ExpiredError: The handle has ended.
            SpentError: Every use counts already, or 3N+3 leases were granted.
            LeasedError: Every use that is left is out; ``details["retry_after_seconds"]`` says when one lapses.
        """
        self._advance(now)
        self._check_open()
        self._check_spent()
        if self._is_used_up():
            raise SpentError(
                f"The resource_url was fetched {self.max_leases} times and acknowledged {self.counted} times.",
                hint=self._call_again,
            )
        self._check_free()
        lease = self._new_id()
        self._leases[lease] = _Lease()
        self._out[lease] = self._now
        return lease

    def announce(self, lease: str, rows: int, checksum: str) -> None:
        """Note what the head of the lease's answer says: what its acknowledgement must repeat (the latest answer's).

        Raises:
            ArgumentError: The lease was never granted, or was released.
        """
        self._find(lease, live=True).announced = (rows, checksum)

    def touch(self, lease: str, now: float) -> None:
        """A byte moved.

        Raises:
            LeasedError, SpentError: The lease had lapsed and its use is gone: the transfer must break.
            RevokedError, ExpiredError: The same, and the handle has ended.
            ArgumentError: The lease was never granted, or was released.
        """
        self._advance(now)
        found = self._find(lease, live=True)
        if found.state is State.LAPSED:
            self._check_open()
            self._check_spent()
            self._check_free()
            found.state = State.OUT
        if found.state is State.OUT:
            self._out[lease] = self._now
            self._out.move_to_end(lease)

    def resume(self, lease: str, now: float) -> None:
        """A client comes back for the rest of its body; as :meth:`touch`.

        Raises:
            SpentError: The lease counts already, besides the errors of :meth:`touch`.
        """
        self._advance(now)
        if self._find(lease, live=True).state is State.COUNTED:
            raise SpentError("This fetch was acknowledged: nothing of it is left to resume.", hint=self._call_again)
        self.touch(lease, now)

    def acknowledge(self, lease: str, rows: int, checksum: str, now: float) -> bool:
        """The client has the whole body.

        Args:
            lease: Its id.
            rows: Rows that it has.
            checksum: Checksum of what it has; with ``rows``, as :meth:`announce` was told.
            now: Monotonic seconds.

        Returns:
            Whether the use counts by this call; False when it was acknowledged before.

        Raises:
            ArgumentError: Another body was sent, nothing was sent yet, or there is no such lease. Nothing changes.
            LeasedError, SpentError: The lease had lapsed and its use is gone: the client must not use the body.
        """
        self._advance(now)
        found = self._find(lease, live=True)
        if found.announced != (rows, checksum):
            raise ArgumentError(
                "The acknowledgement does not repeat the rows and checksum that were sent.",
                hint="Send S2SP-Rows and S2SP-Checksum as they are in the answer.",
            )
        return self._count(lease, found)

    def finish(self, lease: str, now: float) -> bool:
        """The answer was sent whole to a client that cannot acknowledge, as in the reference implementation.

        Returns:
            Whether the use counts by this call.

        Raises:
            LeasedError, SpentError: The lease had lapsed and its use is gone: the answer must not end cleanly.
            ArgumentError: There is no such lease.
        """
        self._advance(now)
        return self._count(lease, self._find(lease, live=True))

    def release(self, lease: str, now: float) -> None:
        """Give a use back at once: the answer failed before its first byte. Does nothing once the lease counts.

        Raises:
            ArgumentError: The lease was never granted.
        """
        self._advance(now)
        found = self._find(lease)
        if found.state is not State.COUNTED:
            found.state = State.RELEASED
            self._out.pop(lease, None)

    def revoke(self) -> None:
        """Grant no further lease; those that are out may end."""
        self._revoked = True

    # --- rules --------------------------------------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        """Let what is idle lapse. Threads may read the clock in another order than they come here, so it never goes back."""
        self._now = max(self._now, now)
        while self._out:
            lease, moved_at = next(iter(self._out.items()))
            if moved_at + self._lapse_seconds > self._now:
                return
            del self._out[lease]
            self._leases[lease].state = State.LAPSED

    def _count(self, lease: str, found: _Lease) -> bool:
        if found.state is State.COUNTED:
            return False
        if found.state is State.LAPSED:
            self._check_spent()
            self._check_free()
        self._out.pop(lease, None)
        found.state = State.COUNTED
        self.counted += 1
        return True

    def _find(self, lease: str, *, live: bool = False) -> _Lease:
        found = self._leases.get(lease)
        if found is None or (live and found.state is State.RELEASED):
            raise _unknown()
        return found

    def _is_used_up(self) -> bool:
        return self.granted >= self.max_leases

    def _check_open(self) -> None:
        if self._revoked:
            raise RevokedError("The resource_url was revoked.", hint=self._call_again)
        if self._now >= self._ends_at:
            raise ExpiredError("The resource_url has expired.", hint=self._call_again)

    def _check_spent(self) -> None:
        if self.counted == self.max_uses:
            times = "once" if self.max_uses == 1 else f"{self.max_uses} times"
            raise SpentError(f"The resource_url was used {times}, which was its limit.", hint=self._call_again)

    def _check_free(self) -> None:
        if self.counted + len(self._out) < self.max_uses:
            return
        seconds = max(math.ceil(next(iter(self._out.values())) + self._lapse_seconds - self._now), 1)
        raise LeasedError(
            "All remaining uses of the resource_url are being fetched.",
            hint=f"Try again in {seconds} s: a fetch that stalls gives its use back.",
            details={"retry_after_seconds": seconds},
        )


def _unknown() -> ArgumentError:
    # The id is not shown: whoever knows it may acknowledge.
    return ArgumentError("This resource_url has no such lease.", hint="Fetch without S2SP-Lease to be given one.")
