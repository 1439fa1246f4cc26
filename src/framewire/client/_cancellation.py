"""Cancellation of a blocking call from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from framewire.client._failures import CallCancelledError


class Cancellation:
    """Ends one blocking call early: stops what it is waiting for, and keeps it from waiting again. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._stop: Callable[[], None] | None = None

    def cancel(self) -> None:
        """Wake the call from its current wait, and let every later one raise."""
        with self._lock:
            self._cancelled.set()
            if self._stop is not None:
                self._stop()

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Have :meth:`cancel` call ``stop`` while the block runs, and never after it.

        Args:
            stop: Called in the cancelling thread, under a lock; it must not block.

        Raises:
            CallCancelledError: The call was cancelled before.
        """
        with self._lock:
            self.check()
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``.

        Raises:
            CallCancelledError: The call was cancelled before or meanwhile.
        """
        self._cancelled.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise if the call was cancelled.

        Raises:
            CallCancelledError: It was.
        """
        if self._cancelled.is_set():
            raise CallCancelledError
