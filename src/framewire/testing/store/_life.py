"""Ends: expiry, revocation and close, for those who are reading and for those who come late."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import pytest

from framewire.errors import ExpiredError, InvalidTokenError, LifecycleError, RevokedError
from framewire.store import Body, BodyStore
from framewire.testing.store._base import (
    LARGE_ROWS,
    StoreSuite,
    check_bytes,
    check_empty,
    check_ended,
    free_bytes,
    in_threads,
    open_once,
    table_of,
    take_lease,
    used_bytes,
)


class LifeTests(StoreSuite):
    """Tests of how handles and stores end."""

    def test_a_handle_expires_on_time_and_is_forgotten_after_as_long_again(self, store: BodyStore) -> None:
        token, _ = self.put(store)
        self.advance(self.ttl_seconds * 0.9)
        open_once(store, token)
        self.advance(self.ttl_seconds * 0.1)
        check_ended(store, token, ExpiredError)
        check_empty(store)
        self.advance(self.ttl_seconds * 1.1)
        store.sweep()
        with pytest.raises(InvalidTokenError) as caught:
            open_once(store, token)
        assert caught.value.code == InvalidTokenError.code

    def test_a_sweep_drops_what_has_ended_and_says_when_to_come_again(self, store: BodyStore) -> None:
        assert store.sweep() is None
        self.put(store)
        seconds = store.sweep()
        assert seconds is not None
        assert 0 < seconds <= self.ttl_seconds
        self.advance(self.ttl_seconds)
        store.sweep()
        check_empty(store)
        for _ in range(10):
            self.advance(store.sweep() or 0)
        assert store.sweep() is None

    @pytest.mark.parametrize("max_uses", [None, 2])
    def test_a_revoked_handle_ends_at_once_and_alone(self, store: BodyStore, max_uses: int | None) -> None:
        token, _ = self.put(store, max_uses=max_uses)
        other, body = self.put(store)
        store.revoke(token)
        check_ended(store, token, RevokedError)
        assert store.stats().bodies == 1
        with store.open(other) as entry:
            check_bytes(entry, body.stored.checksum)

    @pytest.mark.parametrize("end", ["revoke", "expire", "close"])
    def test_an_open_body_stays_until_it_is_closed(self, store: BodyStore, end: str) -> None:
        token, body = self.put(store, table_of(LARGE_ROWS))
        with store.open(token) as entry, store.open(token):
            if end == "revoke":
                store.revoke(token)
            elif end == "expire":
                self.advance(self.ttl_seconds)
                store.sweep()
            else:
                store.close()
            check_bytes(entry, body.stored.checksum)
            assert entry.body.table.equals(table_of(LARGE_ROWS))
            assert used_bytes(store) >= body.nbytes
            assert store.stats().readers == 2
        if end != "close" or not self.outlives_close:
            check_empty(store)

    def test_threads_read_what_they_put_while_it_ends(self, store: BodyStore) -> None:
        def work(number: int) -> None:
            table = table_of(100, number)
            for _ in range(25):
                token, body = self.put(store, table)
                with store.open(token) as entry:
                    store.revoke(token)
                    store.sweep()
                    free_bytes(store)
                    check_bytes(entry, body.stored.checksum)
                    assert entry.body.table.equals(table)

        in_threads(work)
        check_empty(store)

    def test_one_thread_of_many_revokes_a_handle(self, store: BodyStore) -> None:
        token, _ = self.put(store)

        def revoke(_: int) -> bool:
            with suppress(RevokedError):
                store.revoke(token)
                return True
            return False

        assert sum(in_threads(revoke)) == 1

    def test_a_closed_store_takes_nothing_more(self, store: BodyStore) -> None:
        with store.reserve(1 << 20) as reservation:
            body = Body.of(table_of(1000), storage=reservation.storage)
            store.close()
            with pytest.raises(LifecycleError):
                store.put(body, reservation, ttl_seconds=self.ttl_seconds)
        with pytest.raises(LifecycleError):
            store.reserve(1)
        store.close()
        check_empty(store)

    def test_nothing_is_left_after_close(self, store: BodyStore) -> None:
        """No body, byte or open file, however the bodies ended."""
        before = _open_files()
        read, revoked, unread = (self.put(store, table_of(LARGE_ROWS))[0] for _ in range(3))
        limited, _ = self.put(store, max_uses=1)
        with store.open(read) as entry:
            entry.form(views=False)
        with store.open(limited) as entry:
            take_lease(entry)
        store.revoke(revoked)
        if self.outlives_close:
            for token in (read, unread, limited):
                store.revoke(token)
            self.advance(self.lapse_seconds)
            store.sweep()
        store.close()
        check_empty(store)
        for token in (read, revoked, unread, limited):
            with pytest.raises(InvalidTokenError):
                open_once(store, token)
        assert _open_files() <= before
        assert not self.leftovers()


def _open_files() -> set[tuple[int, int]]:
    """Device and inode of the files, memory files too, that this process has open; none where they are not listed."""
    files: set[tuple[int, int]] = set()
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                status = os.fstat(int(name))
                if stat.S_ISREG(status.st_mode):
                    files.add((status.st_dev, status.st_ino))
    return files
