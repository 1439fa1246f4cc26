"""Ends a stdio server on a signal as the end of stdin does.

The SDK reads stdin in a thread that nothing can wake, so a signal's cancellation waits for a line that never comes. Here the
SDK is given a socket in place of stdin; a signal shuts its other end down, and the server ends in the ordinary way.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

from framewire.host.forks import SIGNALS, descriptors_stay, signals_stay

_LAST_SECONDS: Final = 0.7
"""Time after the drain before the process is killed: a tool's thread may run on for as long as it likes."""


@contextmanager
def signals_end_stdin(drain_seconds: float) -> Iterator[None]:
    """While entered, SIGINT and SIGTERM end stdin; a second signal gets the handler that was there before.

    Does nothing outside the main thread, on Windows, and where stdin is not the process's own.

    Args:
        drain_seconds: Time that shutting down may take, besides a moment; then the process is ended.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread() or not _is_own_stdin():
        yield
        return
    with signals_stay(), _stdin_behind_a_pipe() as end:
        before: dict[int, Any] = {}

        def ended(number: int, frame: FrameType | None) -> None:
            for each, handler in before.items():
                signal.signal(each, handler)
            last = threading.Timer(drain_seconds + _LAST_SECONDS, os._exit, (128 + number,))
            last.daemon = True
            last.start()
            end()

        for each in SIGNALS:
            before[each] = signal.signal(each, ended)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _is_own_stdin() -> bool:
    try:
        return sys.stdin.fileno() == 0
    except (AttributeError, OSError, ValueError):
        return False


@contextmanager
def _stdin_behind_a_pipe() -> Iterator[Callable[[], None]]:
    """Put a socket in place of descriptor 0, fed from the real stdin; yields the function that ends it."""
    source = os.dup(0)
    near, far = socket.socketpair()
    os.dup2(far.fileno(), 0)
    far.close()

    def end() -> None:
        # Runs in a signal handler, so it takes no lock. Unlike a closed pipe, this also wakes a thread that is writing.
        with suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)

    feeder = threading.Thread(target=_feed, args=(source, near, end), name="framewire-stdin", daemon=True)
    feeder.start()
    try:
        with descriptors_stay(source, near.fileno()):
            yield end
    finally:
        end()
        feeder.join(1)
        os.dup2(source, 0)
        if not feeder.is_alive():
            os.close(source)
            near.close()


def _feed(source: int, near: socket.socket, end: Callable[[], None]) -> None:
    """Copy ``source`` to ``near`` until either ends."""
    # A reader that is gone, or a stdin that fails, ends the feeding as the end of stdin does.
    with suppress(OSError):
        while source in select.select([source, near.fileno()], [], [])[0] and (data := os.read(source, 1 << 16)):
            near.sendall(data)
    end()
