"""Leases: which fetches of a handle of limited use may go on, and which count."""

from __future__ import annotations

from contextlib import suppress

import pytest

from framewire.errors import ArgumentError, ExpiredError, LeasedError, RevokedError, S2SPError, SpentError
from framewire.store import ActiveLease, BodyStore
from framewire.testing.store._base import (
    StoreSuite,
    acknowledge,
    check_bytes,
    check_empty,
    check_ended,
    in_threads,
    take_lease,
)


class LeaseTests(StoreSuite):
    """Tests of handles with ``max_uses``."""

    def test_a_handle_without_a_limit_takes_no_lease(self, store: BodyStore) -> None:
        token, _ = self.put(store)
        with store.open(token) as entry:
            assert entry.lease(None) is None
        with pytest.raises(ArgumentError):
            store.acknowledge(token, "0" * 32, 1, "xxh3-128=00")

    def test_uses_count_once_when_they_are_acknowledged(self, store: BodyStore) -> None:
        token, body = self.put(store, max_uses=2)
        for _ in range(2):
            with store.open(token) as entry:
                assert entry.is_limited
                lease = take_lease(entry)
            assert acknowledge(store, token, lease, body)
            assert not acknowledge(store, token, lease, body)
        check_ended(store, token, SpentError)
        check_empty(store)
        assert not acknowledge(store, token, lease, body)

    def test_a_use_counts_when_it_is_finished(self, store: BodyStore) -> None:
        token, _ = self.put(store, max_uses=1)
        with store.open(token) as entry:
            take_lease(entry).finish()
            with pytest.raises(SpentError):
                entry.lease(None)
        check_ended(store, token, SpentError)

    def test_an_idle_lease_loses_its_use_to_whoever_asks_first(self, store: BodyStore) -> None:
        self.ttl_seconds = 10 * self.lapse_seconds
        token, body = self.put(store, max_uses=1)
        with store.open(token) as entry:
            first = take_lease(entry)
            self.advance(0.8 * self.lapse_seconds)
            first.touch()
            self.advance(0.8 * self.lapse_seconds)
            with pytest.raises(LeasedError) as caught:
                entry.lease(None)
            assert 0 < caught.value.details["retry_after_seconds"] <= self.lapse_seconds
            self.advance(0.3 * self.lapse_seconds)
            second = take_lease(entry)
            assert second.id != first.id
            with pytest.raises(LeasedError):
                first.touch()
            with pytest.raises(LeasedError):
                acknowledge(store, token, first, body)
            assert acknowledge(store, token, second, body)
            with pytest.raises(SpentError):
                first.touch()

    def test_an_idle_lease_that_nobody_replaced_goes_on(self, store: BodyStore) -> None:
        self.ttl_seconds = 10 * self.lapse_seconds
        token, body = self.put(store, max_uses=1)
        with store.open(token) as entry:
            lease = take_lease(entry)
            self.advance(2 * self.lapse_seconds)
            lease.touch()
            with pytest.raises(LeasedError):
                entry.lease(None)
        assert acknowledge(store, token, lease, body)

    def test_a_lease_is_resumed_by_its_id_until_it_is_acknowledged(self, store: BodyStore) -> None:
        token, body = self.put(store, max_uses=2)
        with store.open(token) as entry:
            lease = take_lease(entry)
        with store.open(token) as entry:
            resumed = entry.lease(lease.id)
            assert resumed is not None
            assert resumed.id == lease.id
            with pytest.raises(ArgumentError):
                entry.lease("0" * 32)
            assert acknowledge(store, token, resumed, body)
            with pytest.raises(SpentError):
                entry.lease(lease.id)
            assert take_lease(entry).id != lease.id

    def test_an_acknowledgement_repeats_what_was_announced(self, store: BodyStore) -> None:
        token, body = self.put(store, max_uses=1)
        rows, checksum = body.total_rows, body.stored.checksum
        with store.open(token) as entry:
            lease = entry.lease(None)
        assert lease is not None
        with pytest.raises(ArgumentError):
            store.acknowledge(token, lease.id, rows, checksum)
        lease.announce(rows, checksum)
        for wrong in ((lease.id, rows + 1, checksum), (lease.id, rows, checksum + "0"), ("0" * 32, rows, checksum)):
            with pytest.raises(ArgumentError):
                store.acknowledge(token, *wrong)
        assert store.acknowledge(token, lease.id, rows, checksum)

    def test_a_client_that_never_acknowledges_cannot_fetch_for_ever(self, store: BodyStore) -> None:
        self.ttl_seconds = 100 * self.lapse_seconds
        token, _ = self.put(store, max_uses=1)
        for _ in range(6):
            with store.open(token) as entry:
                take_lease(entry)
            self.advance(self.lapse_seconds)
        with pytest.raises(SpentError), store.open(token) as entry:
            entry.lease(None)

    @pytest.mark.parametrize(("end", "error"), [("revoke", RevokedError), ("expire", ExpiredError)])
    def test_a_lease_that_is_out_may_finish(self, store: BodyStore, end: str, error: type[S2SPError]) -> None:
        """Its transfer goes on, can be resumed and counts; no other begins."""
        self.ttl_seconds = 0.5 * self.lapse_seconds
        token, body = self.put(store, max_uses=2)
        with store.open(token) as entry:
            lease = take_lease(entry)
            if end == "revoke":
                store.revoke(token)
            else:
                self.advance(self.ttl_seconds)
                store.sweep()
            lease.touch()
            with pytest.raises(error):
                entry.lease(None)
            check_bytes(entry, body.stored.checksum)
        with store.open(token) as entry:
            assert entry.lease(lease.id) is not None
        assert acknowledge(store, token, lease, body)
        assert not acknowledge(store, token, lease, body)
        check_ended(store, token, error)
        check_empty(store)

    def test_threads_share_the_uses_of_a_handle(self, store: BodyStore) -> None:
        for _ in range(10):
            token, body = self.put(store, max_uses=2)

            def lease(_: int, token: str = token) -> ActiveLease | None:
                with store.open(token) as entry, suppress(LeasedError):
                    return take_lease(entry)
                return None

            first, second = [lease for lease in in_threads(lease) if lease is not None]
            assert first.id != second.id
            leases = (first, second)
            counted = in_threads(lambda number: acknowledge(store, token, leases[number % 2], body))  # noqa: B023
            assert sum(counted) == 2
            check_ended(store, token, SpentError)
        check_empty(store)
