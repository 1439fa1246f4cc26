"""Transfers that break at random bytes: each is recovered within the handle's life, none gives a wrong or a short frame."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from framewire.client import PeerPolicy, fetch
from framewire.errors import LeasedError, SpentError, TransferFailedError
from framewire.plane import DataPlane
from framewire.store._leases import LeaseBook
from tests.faults.forms import PATIENCE_SECONDS, trials
from tests.faults.plane_worker import table
from tests.faults.proxy import DroppingProxy

ROWS = 40_000
HEAD_BYTES = 700
"""About what heads take: cuts fall there as well."""


@contextmanager
def _behind_a_proxy() -> Iterator[tuple[DataPlane, DroppingProxy, PeerPolicy]]:
    with DataPlane(ttl_seconds=60) as direct:
        port = int(direct.base_url.rpartition(":")[2])
        with DroppingProxy(port) as proxy:
            origin = f"http://127.0.0.1:{proxy.port}"
            direct._base_url = origin  # handles lead through the proxy
            yield direct, proxy, PeerPolicy(allow=[origin])


def _selection(rng: random.Random) -> tuple[list[Any] | None, list[str] | None]:
    rows: list[Any] | None = rng.choice([None, None, None, ["100-30000"], [rng.randrange(ROWS) for _ in range(2000)]])
    return rows, rng.choice([None, None, ["x"]])


def _expected(whole: pa.Table, rows: list[Any] | None, columns: list[str] | None) -> pa.Table:
    ids = list(range(100, 30_001)) if rows == ["100-30000"] else rows
    numbered = whole.add_column(0, pa.field("_row_id", pa.int64(), nullable=False), pa.array(range(whole.num_rows)))
    chosen = numbered if columns is None else numbered.select(["_row_id", *columns])
    return chosen if ids is None else chosen.take(pa.array(ids))


def _size(rows: list[Any] | None, columns: list[str] | None) -> int:
    count = ROWS if rows is None else 29_901 if rows == ["100-30000"] else len(rows)
    return count * (24 if columns is None else 16)


@trials(50, 1000)
def test_every_dropped_transfer_is_recovered(trials: int, figure: Callable[[str], None]) -> None:
    rng = random.Random(5)
    again = failures = 0
    worst = 0.0
    with _behind_a_proxy() as (plane, proxy, policy):
        whole = table(ROWS, 1)
        handle = plane.publish(whole)
        for trial in range(trials):
            if trial % 200 == 199:
                handle = plane.publish(whole)  # a long form outlives one handle
            rows, columns = _selection(rng)
            proxy.arm(rng.randrange(_size(rows, columns) + HEAD_BYTES), reset=rng.random() < 0.5)
            started = time.monotonic()
            for _ in range(5):
                try:
                    got = fetch(handle.resource_url, rows, columns, policy=policy, deadline_seconds=PATIENCE_SECONDS)
                except TransferFailedError:
                    failures += 1
                else:
                    break
            else:
                raise AssertionError("not recovered")
            proxy.disarm()
            worst = max(worst, time.monotonic() - started)
            again += 1
            assert got.equals(_expected(whole, rows, columns))
        drops = proxy.drops
        assert plane.stats().readers in (0, 1)
    assert drops >= trials * 0.8
    figure(
        f"drops: {drops} of {trials} transfers dropped at random bytes, {again} recovered ({drops - failures} by resuming, "
        f"{failures} by a new fetch), slowest {worst * 1000:.0f} ms, 0 wrong or short frames"
    )


@trials(25, 1000)
def test_acknowledged_uses_never_pass_the_limit(
    trials: int, figure: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch that broke before it knew its lease waits for that lease to lapse: here after a moment, not after 30 s."""
    monkeypatch.setattr("framewire.store._memory.LeaseBook", functools.partial(LeaseBook, lapse_seconds=0.2))
    rng = random.Random(6)
    acknowledged: list[bool] = []
    frames = spent = 0
    with _behind_a_proxy() as (plane, proxy, policy):
        store: Any = plane._store
        count = store.acknowledge

        def acknowledge(*args: Any) -> bool:
            counts: bool = count(*args)
            acknowledged.append(counts)
            return counts

        store.acknowledge = acknowledge
        whole = table(ROWS, 2)
        done = 0
        while done < trials:
            uses = rng.choice([1, 2, 3])
            handle = plane.publish(whole, max_uses=uses)
            acknowledged.clear()
            got_here = 0
            for _ in range(uses):
                proxy.arm(rng.randrange(_size(None, None) + HEAD_BYTES), reset=rng.random() < 0.5)
                got = _fetched(handle.resource_url, policy)
                proxy.disarm()
                done += 1
                if got is None:
                    # The frame arrived and its acknowledgement's answer was cut: the use counts, the client cannot know.
                    spent += 1
                else:
                    assert got.equals(_expected(whole, None, None))
                    got_here += 1
            assert sum(acknowledged) <= uses
            assert got_here <= uses
            frames += got_here
            with pytest.raises(SpentError):
                _until_settled(handle.resource_url, policy)
            assert sum(acknowledged) == uses
        drops = proxy.drops
    assert drops >= trials * 0.8
    figure(
        f"drops with max_uses: {drops} of {done} transfers dropped, {frames} frames, {spent} refused as spent, acknowledged uses "
        "never above N, 0 wrong or short frames"
    )


def _fetched(url: str, policy: PeerPolicy) -> pa.Table | None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            return fetch(url, policy=policy, deadline_seconds=PATIENCE_SECONDS)
        except SpentError:
            return None
        except LeasedError:
            time.sleep(0.02)
        except TransferFailedError:
            pass
    raise AssertionError("not recovered")


def _until_settled(url: str, policy: PeerPolicy) -> None:
    """Fetch until the handle says that it is spent; a lease that is out may first have to lapse."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            fetch(url, policy=policy, deadline_seconds=PATIENCE_SECONDS)
        except LeasedError:
            time.sleep(0.02)
        else:
            return
