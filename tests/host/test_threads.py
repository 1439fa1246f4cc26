from __future__ import annotations

import threading

import anyio
import pytest

from framewire.host.threads import WorkerThreads


def test_each_event_loop_runs_at_most_so_many_at_once() -> None:
    workers = WorkerThreads("test", 2)
    lock, running, most = threading.Lock(), 0, 0
    both = threading.Barrier(2)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(10)  # passes in pairs, so two do run at once
        with lock:
            running -= 1

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(workers.run, work)

    for _ in range(2):  # a limiter of the first loop could not be used in the second
        anyio.run(main)
    assert most == 2


def test_arguments_results_and_errors_pass_through() -> None:
    workers = WorkerThreads("test", 1)

    async def main() -> None:
        assert await workers.run(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]
        with pytest.raises(ZeroDivisionError):
            await workers.run(divmod, 1, 0)

    anyio.run(main)
