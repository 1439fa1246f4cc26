from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from framewire.errors import ArgumentError, ExpiredError, LeasedError, RevokedError, S2SPError, SettingError, SpentError
from framewire.store._leases import LAPSE_SECONDS, LeaseBook, State

LONG = os.environ.get("FRAMEWIRE_LONG") == "1"
SENT = (1000, "xxh3-128=00")


def _uses(max_uses: int = 1, **options: Any) -> LeaseBook:
    return LeaseBook(max_uses, **options)


def _fetched(uses: LeaseBook, now: float) -> str:
    lease = uses.acquire(now)
    uses.announce(lease, *SENT)
    uses.touch(lease, now)
    return lease


# --- the tables, row by row -------------------------------------------------------------------------------------------


def test_a_use_counts_when_it_is_acknowledged_and_once() -> None:
    uses = _uses()
    lease = _fetched(uses, 0)
    assert (uses.counted, uses.out(1), uses.is_over(1)) == (0, 1, False)
    assert uses.acknowledge(lease, *SENT, 1)
    assert not uses.acknowledge(lease, *SENT, 2)
    assert (uses.counted, uses.out(2), uses.is_over(2)) == (1, 0, True)
    with pytest.raises(SpentError, match="used once.*Call the resource tool again"):
        uses.acquire(3)


def test_a_loser_hears_when_to_come_back_and_can_still_win() -> None:
    uses = _uses()
    winner = _fetched(uses, 100.0)
    uses.touch(winner, 110.0)
    with pytest.raises(LeasedError, match="again in 20 s") as caught:
        uses.acquire(120.5)
    assert caught.value.details == {"retry_after_seconds": 20}
    assert uses.next_lapse(120.5) == 140.0
    loser = _fetched(uses, 140.0)
    assert uses.state(winner, 140.0) is State.LAPSED
    with pytest.raises(LeasedError):
        uses.touch(winner, 141.0)
    with pytest.raises(LeasedError):
        uses.acknowledge(winner, *SENT, 141.0)
    assert uses.acknowledge(loser, *SENT, 142.0)
    for late in (lambda: uses.acknowledge(winner, *SENT, 143.0), lambda: uses.resume(winner, 143.0)):
        with pytest.raises(SpentError):
            late()
    assert uses.counted == 1


def test_a_byte_keeps_a_lease_and_a_lapsed_one_takes_its_use_again() -> None:
    uses = _uses()
    lease = _fetched(uses, 0)
    for now in range(0, 3000, 29):
        uses.touch(lease, now)
    assert uses.state(lease, 2987 + 29.9) is State.OUT
    assert uses.state(lease, 2987 + 30) is State.LAPSED
    uses.resume(lease, 4000)
    assert uses.state(lease, 4000) is State.OUT
    assert uses.granted == 1


def test_a_late_acknowledgement_counts_while_a_use_is_free() -> None:
    uses = _uses(ends_at=50)
    lease = _fetched(uses, 0)
    assert uses.state(lease, 100) is State.LAPSED
    assert uses.is_over(100)
    assert uses.acknowledge(lease, *SENT, 100)
    assert uses.counted == 1


def test_an_acknowledgement_must_name_what_was_sent() -> None:
    uses = _uses()
    lease = uses.acquire(0)
    with pytest.raises(ArgumentError, match="S2SP-Rows"):
        uses.acknowledge(lease, *SENT, 1)
    uses.announce(lease, *SENT)
    for other in ((999, SENT[1]), (SENT[0], "xxh3-128=01")):
        with pytest.raises(ArgumentError):
            uses.acknowledge(lease, *other, 1)
    assert (uses.counted, uses.out(1)) == (0, 1)
    uses.acknowledge(lease, *SENT, 1)
    with pytest.raises(ArgumentError):
        uses.acknowledge(lease, 999, SENT[1], 2)


def test_a_client_that_cannot_acknowledge_counts_when_all_was_sent() -> None:
    uses = _uses(2)
    first = _fetched(uses, 0)
    assert uses.finish(first, 5)
    assert not uses.finish(first, 6)
    second, third = _fetched(uses, 6), None
    with pytest.raises(LeasedError):
        third = uses.acquire(7)
    assert third is None
    assert uses.state(second, 36) is State.LAPSED
    uses.finish(_fetched(uses, 37), 38)
    with pytest.raises(SpentError):
        uses.finish(second, 39)
    assert uses.counted == 2


def test_a_released_lease_gives_its_use_back_at_once_and_is_gone() -> None:
    uses = _uses()
    lease = uses.acquire(0)
    uses.release(lease, 1)
    other = _fetched(uses, 1)
    calls: list[Callable[[], object]] = [
        lambda: uses.touch(lease, 2),
        lambda: uses.resume(lease, 2),
        lambda: uses.announce(lease, *SENT),
        lambda: uses.acknowledge(lease, *SENT, 2),
        lambda: uses.finish(lease, 2),
    ]
    for call in calls:
        with pytest.raises(ArgumentError):
            call()
    uses.acknowledge(other, *SENT, 2)
    uses.release(other, 3)
    assert uses.counted == 1


@pytest.mark.parametrize("max_uses", [1, 2, 5])
def test_leases_are_bounded(max_uses: int) -> None:
    """A client that never acknowledges cannot fetch for ever."""
    uses, now = _uses(max_uses), 0.0
    for _ in range(3 * max_uses + 3):
        _fetched(uses, now)
        now += LAPSE_SECONDS
    with pytest.raises(SpentError, match=f"fetched {3 * max_uses + 3} times and acknowledged 0 times"):
        uses.acquire(now + 1000)
    assert uses.is_over(now + 1000)


@pytest.mark.parametrize("error", [ExpiredError, RevokedError])
def test_an_ended_handle_grants_nothing_new_and_stops_nothing_that_runs(error: type[S2SPError]) -> None:
    uses = _uses(2, ends_at=10 if error is ExpiredError else math.inf, call_again="Call 'flights' again.")
    running, idle = _fetched(uses, 9), _fetched(uses, 0)
    if error is RevokedError:
        uses.revoke()
    with pytest.raises(error, match="Call 'flights' again"):
        uses.acquire(10)
    uses.touch(running, 38)
    uses.resume(running, 39)
    assert not uses.is_over(39)
    with pytest.raises(error):
        uses.resume(idle, 40)
    assert uses.acknowledge(running, *SENT, 41)
    assert uses.is_over(41)


def test_a_revocation_is_told_before_the_end_and_the_end_before_a_lease() -> None:
    uses = _uses(ends_at=10)
    _fetched(uses, 0)
    with pytest.raises(LeasedError):
        uses.acquire(9)
    with pytest.raises(ExpiredError):
        uses.acquire(11)
    uses.revoke()
    with pytest.raises(RevokedError):
        uses.acquire(12)


def test_a_clock_that_is_read_out_of_order_never_goes_back() -> None:
    uses = _uses()
    lease = _fetched(uses, 0)
    assert uses.state(lease, 30) is State.LAPSED
    assert uses.state(lease, 29) is State.LAPSED
    uses.acquire(29)
    assert uses.next_lapse(0) == 60


def test_lease_ids_are_not_to_be_guessed_and_not_shown() -> None:
    uses = _uses(1000)
    leases = [uses.acquire(0) for _ in range(1000)]
    assert len(set(leases)) == 1000
    assert {len(lease) for lease in leases} == {32}
    assert not [lease for lease in leases if lease in repr(uses)]
    with pytest.raises(ArgumentError) as caught:
        uses.touch("a" * 32, 0)
    assert "a" * 32 not in str(caught.value)
    with pytest.raises(ArgumentError):
        uses.state("a" * 32, 0)


@pytest.mark.parametrize("max_uses", [0, -1])
def test_uses_are_counted_from_one(max_uses: int) -> None:
    with pytest.raises(SettingError, match="max_uses"):
        LeaseBook(max_uses)


# --- against a naive model --------------------------------------------------------------------------------------------


class _Model:
    """Looks at every lease each time; knows no order and no shortcuts."""

    def __init__(self, max_uses: int, ends_at: float) -> None:
        self.max_uses, self.ends_at = max_uses, ends_at
        self.now = 0.0
        self.revoked = False
        self.moved: dict[str, float] = {}
        self.final: dict[str, State] = {}
        self.sent: dict[str, tuple[int, str]] = {}

    def state(self, lease: str) -> State:
        if lease in self.final:
            return self.final[lease]
        return State.OUT if self.now - self.moved[lease] < LAPSE_SECONDS else State.LAPSED

    def number(self, state: State) -> int:
        return sum(self.state(lease) is state for lease in self.moved)

    def refusal(self, *, opens: bool) -> type[S2SPError] | None:
        """Why no use can be taken."""
        if opens and self.revoked:
            return RevokedError
        if opens and self.now >= self.ends_at:
            return ExpiredError
        if self.number(State.COUNTED) >= self.max_uses:
            return SpentError
        return LeasedError if self.number(State.COUNTED) + self.number(State.OUT) >= self.max_uses else None

    def acquire(self) -> type[S2SPError] | None:
        refusal = self.refusal(opens=True)
        if refusal in (None, LeasedError) and len(self.moved) == 3 * self.max_uses + 3:
            return SpentError
        return refusal

    def move(self, lease: str, *, resume: bool) -> type[S2SPError] | None:
        state = self.state(lease)
        if state is State.RELEASED:
            return ArgumentError
        if state is State.COUNTED:
            return SpentError if resume else None
        refusal = self.refusal(opens=True) if state is State.LAPSED else None
        if refusal is None:
            self.moved[lease] = self.now
        return refusal

    def count(self, lease: str, facts: tuple[int, str] | None) -> type[S2SPError] | bool:
        state = self.state(lease)
        if state is State.RELEASED or (facts is not None and self.sent.get(lease) != facts):
            return ArgumentError
        if state is State.COUNTED:
            return False
        refusal = self.refusal(opens=False) if state is State.LAPSED else None
        if refusal is None:
            self.final[lease] = State.COUNTED
        return refusal or True


_FACTS = st.sampled_from([SENT, (1000, "xxh3-128=01"), (0, "xxh3-128=00")])


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.names = (f"lease {number}" for number in range(10_000))
        self.leases: list[str] = []
        self.uses = LeaseBook(1)
        self.model = _Model(1, math.inf)

    @initialize(max_uses=st.integers(1, 4), ends_at=st.sampled_from([40.0, 200.0, math.inf]))
    def begin(self, max_uses: int, ends_at: float) -> None:
        self.uses = LeaseBook(max_uses, ends_at=ends_at, new_id=lambda: next(self.names))
        self.model = _Model(max_uses, ends_at)

    def check(self, expected: type[S2SPError] | None, call: Callable[[], object]) -> object:
        if expected is None:
            return call()
        with pytest.raises(expected) as caught:
            call()
        assert type(caught.value) is expected
        if expected is LeasedError:
            soonest = min(t for lease, t in self.model.moved.items() if self.model.state(lease) is State.OUT)
            seconds = soonest + LAPSE_SECONDS - self.model.now
            assert caught.value.details["retry_after_seconds"] == max(math.ceil(seconds), 1)
        return None

    def a_lease(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(self.leases))

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0, 29.0, 29.5, 30.0, 31.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds

    @rule()
    def acquire(self) -> None:
        expected = self.model.acquire()
        lease = self.check(expected, lambda: self.uses.acquire(self.model.now))
        if expected is None:
            assert isinstance(lease, str)
            self.model.moved[lease] = self.model.now
            self.leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), facts=_FACTS)
    def announce(self, data: st.DataObject, facts: tuple[int, str]) -> None:
        lease = self.a_lease(data)
        expected = ArgumentError if self.model.state(lease) is State.RELEASED else None
        self.check(expected, lambda: self.uses.announce(lease, *facts))
        if expected is None:
            self.model.sent[lease] = facts

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), late=st.sampled_from([0.0, 0.0, 5.0]))
    def touch(self, data: st.DataObject, late: float) -> None:
        """A thread that read the clock some time before its turn changes nothing."""
        lease = self.a_lease(data)
        self.uses.out(self.model.now)
        self.check(self.model.move(lease, resume=False), lambda: self.uses.touch(lease, self.model.now - late))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        lease = self.a_lease(data)
        self.check(self.model.move(lease, resume=True), lambda: self.uses.resume(lease, self.model.now))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), facts=_FACTS)
    def acknowledge(self, data: st.DataObject, facts: tuple[int, str]) -> None:
        lease = self.a_lease(data)
        self.counted(self.model.count(lease, facts), lambda: self.uses.acknowledge(lease, *facts, self.model.now))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        lease = self.a_lease(data)
        self.counted(self.model.count(lease, None), lambda: self.uses.finish(lease, self.model.now))

    def counted(self, expected: type[S2SPError] | bool, call: Callable[[], bool]) -> None:
        if isinstance(expected, bool):
            assert call() is expected
        else:
            self.check(expected, call)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = self.a_lease(data)
        self.uses.release(lease, self.model.now)
        if self.model.state(lease) is not State.COUNTED:
            self.model.final[lease] = State.RELEASED

    @precondition(lambda self: len(self.leases) > 2)
    @rule()
    def revoke(self) -> None:
        self.uses.revoke()
        self.model.revoked = True

    @rule(call=st.sampled_from(["touch", "resume", "finish", "release"]))
    def a_lease_of_nobody(self, call: str) -> None:
        with pytest.raises(ArgumentError):
            getattr(self.uses, call)("not a lease", self.model.now)

    @invariant()
    def nothing_is_used_twice(self) -> None:
        out = self.uses.out(self.model.now)
        assert self.uses.counted <= self.uses.max_uses
        assert self.uses.counted + out <= self.uses.max_uses
        assert self.uses.granted <= 3 * self.uses.max_uses + 3

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        now, model = self.model.now, self.model
        for lease in self.leases:
            assert self.uses.state(lease, now) is model.state(lease)
        assert self.uses.counted == model.number(State.COUNTED)
        assert self.uses.out(now) == model.number(State.OUT)
        assert self.uses.granted == len(model.moved)
        assert self.uses.is_over(now) == (model.number(State.OUT) == 0 and model.acquire() not in (None, LeasedError))
        ends = [moved + LAPSE_SECONDS for lease, moved in model.moved.items() if model.state(lease) is State.OUT]
        assert self.uses.next_lapse(now) == (min(ends) if ends else None)


EXAMPLES = 10_000 if LONG else max(settings().max_examples, 300)

TestLeases = LeaseMachine.TestCase
TestLeases.settings = settings(max_examples=EXAMPLES, stateful_step_count=40)
