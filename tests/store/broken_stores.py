"""Stores that break one rule each, and the tests of the conformance suite that notice. Run by test_conformance.py."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framewire.errors import ArgumentError, RevokedError
from framewire.handle import token_hash
from framewire.store import Body, Budget, Disk, Heap, MemoryStore, Representation, Reservation, StoredBytes
from framewire.testing.store import BodyStoreTests


class Broken(BodyStoreTests):
    store_class: type[MemoryStore] = MemoryStore
    noticed_by: tuple[str, ...] = ()

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> MemoryStore:
        return self.store_class(budget_bytes, clock=clock)


class TestNothingExpires(Broken):
    noticed_by = (
        "test_a_handle_expires_on_time_and_is_forgotten_after_as_long_again",
        "test_ended_bodies_give_way_without_a_sweep",
    )

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> MemoryStore:
        return MemoryStore(budget_bytes, clock=lambda: 0.0)


class TestAByteIsAltered(Broken):
    noticed_by = ("test_a_body_comes_back_byte_for_byte", "test_tables_of_every_type_come_back_exactly")

    class store_class(MemoryStore):
        def put(self, body: Body, reservation: Reservation, **options: Any) -> str:
            data = bytearray(body.stored.buffer)
            data[-20] ^= 1
            return super().put(
                replace(body, stored=Representation(pa.py_buffer(data), body.stored.checksum)), reservation, **options
            )


class TestViewsAreSentToThoseWhoReadNone(Broken):
    noticed_by = ("test_other_forms_hold_the_same_rows",)

    class store_class(MemoryStore):
        def put(self, body: Body, reservation: Reservation, **options: Any) -> str:
            return super().put(replace(body, has_views=False), reservation, **options)


class TestTokensAreCounted(Broken):
    noticed_by = ("test_tokens_have_the_wires_form_and_all_differ",)

    class store_class(MemoryStore):
        def put(self, *args: Any, **options: Any) -> str:
            record = self._records[token_hash(super().put(*args, **options))]
            token = f"body-{len(self._records)}"
            self._records[token_hash(token)] = record
            return token


class TestTheBudgetIsNotChecked(Broken):
    noticed_by = (
        "test_bytes_are_promised_up_to_the_budget_and_given_back",
        "test_a_promise_is_resized_within_the_budget",
        "test_a_body_that_outgrew_its_promise_and_the_budget_is_refused",
    )

    class store_class(MemoryStore):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._memory._check = lambda nbytes: None  # type: ignore[method-assign]


class TestTheBudgetIsCheckedBeforeItsLockIsTaken(Broken):
    noticed_by = ("test_threads_are_never_promised_more_than_the_budget",)

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> MemoryStore:
        class RacyBudget(Budget):
            all_checked = threading.Barrier(8, timeout=30)

            def reserve(self, nbytes: int) -> Reservation:
                self._check(nbytes)
                self.all_checked.wait()
                with self._lock:
                    self.reserved_bytes += nbytes
                return Reservation(self, nbytes)

        store = MemoryStore(budget_bytes, clock=clock)
        store._memory = RacyBudget(budget_bytes, Heap(), setting="")
        return store


class TestPromisesAreNotGivenBack(Broken):
    noticed_by = (
        "test_bytes_are_promised_up_to_the_budget_and_given_back",
        "test_a_body_that_outgrew_its_promise_and_the_budget_is_refused",
        "test_a_closed_store_takes_nothing_more",
    )

    class store_class(MemoryStore):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._memory._return = lambda nbytes: None  # type: ignore[method-assign]


class TestReadersDoNotKeepABody(Broken):
    noticed_by = ("test_an_open_body_stays_until_it_is_closed",)

    class store_class(MemoryStore):
        def _settle(self, record: Any) -> None:
            readers, record.readers = record.readers, 0
            super()._settle(record)
            record.readers = readers


class TestEndedHandlesAreForgottenAtOnce(Broken):
    noticed_by = (
        "test_a_handle_expires_on_time_and_is_forgotten_after_as_long_again",
        "test_a_revoked_handle_ends_at_once_and_alone",
        "test_uses_count_once_when_they_are_acknowledged",
    )

    class store_class(MemoryStore):
        def _end(self, *args: Any) -> None:
            super()._end(*args)
            self._tombstones.clear()


class TestNothingIsSwept(Broken):
    noticed_by = ("test_a_sweep_drops_what_has_ended_and_says_when_to_come_again",)

    class store_class(MemoryStore):
        def sweep(self) -> float | None:
            return None


class TestRevokingOneRevokesAll(Broken):
    noticed_by = ("test_a_revoked_handle_ends_at_once_and_alone",)

    class store_class(MemoryStore):
        def revoke(self, token: str) -> None:
            super().revoke(token)
            for key in list(self._records):
                self._end(key, RevokedError)


class TestRevokingTwiceIsNoError(Broken):
    noticed_by = ("test_one_thread_of_many_revokes_a_handle", "test_a_revoked_handle_ends_at_once_and_alone")

    class store_class(MemoryStore):
        def revoke(self, token: str) -> None:
            try:
                super().revoke(token)
            except RevokedError:
                return


class TestMoreUsesThanTheLimit(Broken):
    noticed_by = (
        "test_uses_count_once_when_they_are_acknowledged",
        "test_a_use_counts_when_it_is_finished",
        "test_threads_share_the_uses_of_a_handle",
        "test_a_client_that_never_acknowledges_cannot_fetch_for_ever",
    )

    class store_class(MemoryStore):
        def put(self, *args: Any, max_uses: int | None = None, **options: Any) -> str:
            return super().put(*args, max_uses=None if max_uses is None else max_uses + 1, **options)


class TestAcknowledgementsCountTwice(Broken):
    noticed_by = ("test_uses_count_once_when_they_are_acknowledged", "test_threads_share_the_uses_of_a_handle")

    class store_class(MemoryStore):
        def acknowledge(self, *args: Any) -> bool:
            super().acknowledge(*args)
            return True


class TestAnyAcknowledgementIsBelieved(Broken):
    noticed_by = ("test_an_acknowledgement_repeats_what_was_announced", "test_a_handle_without_a_limit_takes_no_lease")

    class store_class(MemoryStore):
        def acknowledge(self, *args: Any) -> bool:
            try:
                return super().acknowledge(*args)
            except ArgumentError:
                return True


class TestLeasesNeverLapse(Broken):
    noticed_by: tuple[str, ...] = ("test_an_idle_lease_loses_its_use_to_whoever_asks_first",)
    lapse: float = math.inf

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> MemoryStore:
        lapse = self.lapse

        class Store(MemoryStore):
            def put(self, *args: Any, **options: Any) -> str:
                token = super().put(*args, **options)
                if (book := self._records[token_hash(token)].book) is not None:
                    book._lapse_seconds = lapse
                return token

        return Store(budget_bytes, clock=clock)


class TestLeasesLapseAtOnce(TestLeasesNeverLapse):
    noticed_by = (
        "test_an_idle_lease_loses_its_use_to_whoever_asks_first",
        "test_a_lease_that_is_out_may_finish",
        "test_threads_share_the_uses_of_a_handle",
    )
    lapse = 0.0


class TestAClosedStoreTakesBodies(Broken):
    noticed_by = ("test_a_closed_store_takes_nothing_more",)

    class store_class(MemoryStore):
        def _check_open(self) -> None:
            pass


class TestBodiesOutliveClose(Broken):
    noticed_by = ("test_nothing_is_left_after_close", "test_an_open_body_stays_until_it_is_closed")

    class store_class(MemoryStore):
        def close(self) -> None:
            self._closed = True


class TestDescriptorsAreLeftOpen(Broken):
    noticed_by = ("test_nothing_is_left_after_close",)

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> MemoryStore:
        class LeakingDisk(Disk):
            def write(self, parts: Iterable[memoryview], nbytes: int) -> StoredBytes:
                stored = super().write(parts, nbytes)
                assert stored.fd is not None
                os.dup(stored.fd)
                return stored

        return MemoryStore(budget_bytes, storage=LeakingDisk(), clock=clock)


class TestFilesAreLeft(Broken):
    noticed_by = ("test_nothing_is_left_after_close",)

    @pytest.fixture(autouse=True)
    def in_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def leftovers(self) -> list[Path]:
        return list(self.folder.iterdir())

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> MemoryStore:
        folder = self.folder

        class Store(MemoryStore):
            def put(self, *args: Any, **options: Any) -> str:
                token = super().put(*args, **options)
                (folder / token).touch()
                return token

        return Store(budget_bytes, clock=clock)
