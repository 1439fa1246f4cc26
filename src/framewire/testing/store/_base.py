"""The store under test, its clock, and what every test of the suite does with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Final, TypeVar

import pyarrow as pa
import pytest

from framewire.arrow import write
from framewire.errors import S2SPError
from framewire.split import add_row_id
from framewire.store import ActiveLease, Body, BodyStore, Entry

T = TypeVar("T")

BUDGET_BYTES: Final = 32 << 20
"""Budget of the stores under test: several bodies of the largest kind fit in it."""

LARGE_ROWS: Final = 30_000
"""Rows of a body above 1 MiB, which storages may keep otherwise than a small one."""

THREADS: Final = 8
TOOL: Final = "flights"


class ManualClock:
    """Monotonic seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class StoreSuite:
    """Hooks for the author of a store; see ``BodyStoreTests``."""

    ttl_seconds: float = 10.0
    lapse_seconds: float = 30.0
    outlives_close: bool = False

    def make_store(self, budget_bytes: int, clock: Callable[[], float]) -> BodyStore:
        """An empty store.

        Args:
            budget_bytes: Its budget: :data:`BUDGET_BYTES`.
            clock: Monotonic seconds, in place of ``time.monotonic``.
        """
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """Let time pass; by default on the clock that ``make_store`` was given."""
        self.clock.now += seconds

    def leftovers(self) -> Collection[object]:
        """List what a closed store left outside of this process, such as files."""
        return ()

    @cached_property
    def clock(self) -> ManualClock:
        """The clock of one test."""
        return ManualClock()

    @pytest.fixture
    def store(self) -> Iterator[BodyStore]:
        """The store under test, closed afterwards."""
        store = self.make_store(BUDGET_BYTES, self.clock)
        yield store
        store.close()

    def put(self, store: BodyStore, table: pa.Table | None = None, *, max_uses: int | None = None) -> tuple[str, Body]:
        """Put a table as a publish does. Returns its token and the body that was put."""
        table = table_of(1000) if table is None else table
        with store.reserve(int(table.get_total_buffer_size()), spill=True) as reservation:
            body = Body.of(table, tool=TOOL, storage=reservation.storage)
            return store.put(body, reservation, ttl_seconds=self.ttl_seconds, max_uses=max_uses), body


@cache
def table_of(rows: int, first: int = 0) -> pa.Table:
    """A numbered table of an integer and of a text that is longer than a view holds."""
    numbers = range(first, first + rows)
    texts = pa.array([f"the text of row {number:06}, long" for number in numbers], pa.string())
    return add_row_id(pa.table({"n": pa.array(numbers, pa.int64()), "text": texts.cast(pa.string_view())}))


def check_bytes(entry: Entry, checksum: str) -> None:
    """The stored form has the bytes that were put."""
    stored = entry.body.stored
    assert stored.checksum == write.checksum([stored.buffer]) == checksum
    assert entry.form(views=True).checksum == checksum


def check_empty(store: BodyStore) -> None:
    """Nothing is held, promised or being read."""
    stats = store.stats()
    assert (stats.bodies, stats.reserved_bytes, stats.readers, used_bytes(store)) == (0, 0, 0, 0)


def check_ended(store: BodyStore, token: str, error: type[S2SPError]) -> None:
    """The handle can be neither opened nor revoked; the error is exactly this one, and names the tool to call again."""
    calls: tuple[Callable[[], None], ...] = (lambda: open_once(store, token), lambda: store.revoke(token))
    for call in calls:
        with pytest.raises(error) as caught:
            call()
        assert caught.value.code == error.code
        assert TOOL in caught.value.hint


def open_once(store: BodyStore, token: str) -> None:
    """Open a body and close it."""
    with store.open(token):
        pass


def used_bytes(store: BodyStore) -> int:
    """Bytes of bodies, in memory and on disk."""
    stats = store.stats()
    return stats.held_bytes + stats.spilled_bytes


def free_bytes(store: BodyStore) -> int:
    """Bytes that can be promised still; never negative."""
    stats = store.stats()
    assert stats.held_bytes + stats.reserved_bytes <= stats.budget_bytes
    return stats.budget_bytes - stats.held_bytes - stats.reserved_bytes


def take_lease(entry: Entry) -> ActiveLease:
    """Take a new lease, and announce the whole body under it."""
    lease = entry.lease(None)
    assert lease is not None
    lease.announce(entry.body.total_rows, entry.body.stored.checksum)
    return lease


def acknowledge(store: BodyStore, token: str, lease: ActiveLease, body: Body) -> bool:
    """Acknowledge the whole body. Returns whether the use counts by this call."""
    return store.acknowledge(token, lease.id, body.total_rows, body.stored.checksum)


def in_threads(work: Callable[[int], T]) -> list[T]:
    """The results of ``work(0)``, ``work(1)`` and so on, called at the same moment."""
    begin = threading.Barrier(THREADS, timeout=60)

    def run(number: int) -> T:
        begin.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))
