"""One thread that ends exchanges at their deadline, however their peer behaves.

A socket timeout bounds a single ``recv``: a server that sends one byte now and then never trips it. The watchdog shuts
the socket down at the deadline, which wakes whatever call is blocked on it.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from typing import Final

_LONGEST_WAIT_SECONDS: Final = 3600.0
"""``Condition.wait`` refuses absurdly long timeouts; waking once an hour costs nothing."""


class Watch:
    """One socket under a deadline.

    Attributes:
        at: When the socket is shut down, on the clock of ``time.monotonic``.
        fired: Whether that has happened.
    """

    __slots__ = ("_sock", "at", "fired")

    def __init__(self, sock: socket.socket, at: float) -> None:
        self._sock = sock
        self.at = at
        self.fired = False

    def fire(self) -> None:
        """Shut the socket down; called by the watchdog alone."""
        self.fired = True
        # The plain socket's method also under TLS: SSLSocket.shutdown drops its TLS state first, and the reader would
        # then take ciphertext for plain text. An OSError means that the peer was faster.
        with suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)


class Watchdog:
    """The thread and the watches that it minds. It starts with the first watch and is a daemon."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            # A forked child has no such thread, and a lock that might be held for ever.
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._watches: set[Watch] = set()
        self._wakes_at = float("inf")
        self._thread: threading.Thread | None = None

    def watch(self, sock: socket.socket, at: float) -> Watch:
        """Shut ``sock`` down at the monotonic time ``at`` unless :meth:`release` comes first."""
        watch = Watch(sock, at)
        with self._changed:
            self._watches.add(watch)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="framewire-watchdog", daemon=True)
                thread.start()
                self._thread = thread
            elif at < self._wakes_at:
                self._changed.notify()
        return watch

    def release(self, watch: Watch) -> None:
        """Stop minding a watch. After this returns its socket is not touched, so that it can be closed or kept."""
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for watch in [watch for watch in self._watches if watch.at <= now]:
                    self._watches.discard(watch)
                    watch.fire()
                self._wakes_at = min((watch.at for watch in self._watches), default=float("inf"))
                self._changed.wait(min(self._wakes_at - now, _LONGEST_WAIT_SECONDS))


WATCHDOG: Final = Watchdog()
"""The process's only one: a thread per exchange would cost more than most exchanges."""
