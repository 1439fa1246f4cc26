"""kill -9 of a server that spills to disk while it publishes and serves."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framewire.client import PeerPolicy, fetch
from framewire.errors import RevokedError, S2SPError, TransferDeniedError, TransferFailedError
from framewire.host import registry
from framewire.settings import Settings
from tests.faults.forms import PATIENCE_SECONDS, trials, until
from tests.faults.plane_worker import table
from tests.faults.processes import Process

LONG = 500 if os.environ.get("FRAMEWIRE_LONG") == "1" else 100


class _Clients:
    """Two threads that fetch every handle they are given, and compare each frame with what was published."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[Any] = []
        self._jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def give(self, job: dict[str, Any]) -> None:
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                got = fetch(job["url"], deadline_seconds=PATIENCE_SECONDS)
            except (TransferFailedError, TransferDeniedError, RevokedError) as exc:
                self.outcomes[exc.code] += 1
            except BaseException as exc:
                self.wrong.append(repr(exc))
            else:
                self.outcomes["frames"] += 1
                if not got.drop_columns(["_row_id"]).equals(table(job["rows"], job["seed"])):
                    self.wrong.append(job)

    def have_done(self, wanted: int) -> bool:
        return sum(self.outcomes.values()) >= wanted

    def forget_waiting(self) -> None:
        """Leave what has not begun: its server is dead, and nothing is learnt from calling it."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()

    def finish(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


@trials(4, LONG)
def test_nothing_is_left_of_a_killed_server(
    trials: int, tmp_path: Path, runtime: Path, figure: Callable[[str], None]
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    env = {"FRAMEWIRE_SPILL_DIR": str(spill), "FRAMEWIRE_MEMORY_BUDGET_BYTES": "1"}
    rng = random.Random(7)
    clients = _Clients()
    ready: list[float] = []
    published = 0
    for _ in range(trials):
        started = time.monotonic()
        with Process("-m", "tests.faults.kill_worker", env=env) as server:
            origin = json.loads(server.out.next() or "")["ready"]
            ready.append(time.monotonic() - started)
            stop_after = rng.randrange(1, 25)
            before = sum(clients.outcomes.values())
            for _ in range(stop_after):
                line = server.out.next()
                assert line is not None, server.err.rest()
                clients.give(json.loads(line))
            published += stop_after
            # The kill comes at any time: between transfers, and in the middle of one.
            wanted = before + rng.randrange(stop_after)
            until(functools.partial(clients.have_done, wanted), "clients fetch")
            assert registry.lookup(origin, folder=str(runtime)) is not None
            server.kill()
            clients.forget_waiting()
        # Its entry is still a file, and nobody calls it.
        assert registry.lookup(origin, folder=str(runtime)) is None
        assert list(registry.entries(folder=str(runtime))) == []
        assert list(spill.iterdir()) == []
    clients.finish()
    assert clients.wrong == []
    assert clients.outcomes["frames"] > 0
    assert set(clients.outcomes) <= {"frames", "transfer_failed", "peer_refused", "revoked"}
    assert len(list(runtime.glob("*.json"))) <= 1  # what the last one left; each start removes the one before
    ready.sort()
    slow = sum(seconds >= 2 for seconds in ready)
    figure(
        f"kill -9: {trials} kills while {published} bodies were published and {sum(clients.outcomes.values())} fetched "
        f"({clients.outcomes['frames']} frames): 0 wrong or short, 0 files left, 0 live registry entries; "
        f"next server ready in {ready[len(ready) // 2]:.2f} s (median), {ready[-1]:.2f} s at most ({slow} not within 2 s)"
    )
    with pytest.raises(S2SPError):
        fetch(f"{origin}/s2sp/data/fw1{'a' * 32}", policy=PeerPolicy.from_settings(Settings.from_env()))
