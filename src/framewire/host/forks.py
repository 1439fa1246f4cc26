"""A forked child starts without this process's signal handlers, descriptors and claims.

A tool may fork at any time (``multiprocessing``). The child is no server: a signal sent to it must end it, not the parent, and
whatever it inherits must not keep the parent's port open or speak on the parent's pipes.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_CALLBACKS: Final[list[Callable[[], None]]] = []
_DESCRIPTORS: Final[set[int]] = set()
_HANDLERS: Final[list[dict[int, Any]]] = []
_BLOCKED = threading.local()


def in_child(callback: Callable[[], None]) -> None:
    """Call ``callback`` in every forked child, for as long as this process lives. It takes no lock that a thread may hold."""
    _CALLBACKS.append(callback)


@contextmanager
def descriptors_stay(*descriptors: int) -> Iterator[None]:
    """While entered, a forked child has ``/dev/null`` under these descriptors.

    They are replaced and not closed: a socket object or an event loop of the child's copy may still close the number, which another
    file would have by then.
    """
    _DESCRIPTORS.update(descriptors)
    try:
        yield
    finally:
        _DESCRIPTORS.difference_update(descriptors)


@contextmanager
def signals_stay() -> Iterator[None]:
    """While entered, a forked child has the handlers of SIGINT and SIGTERM that were in force at the moment of entry.

    Without this a worker that ``Pool.terminate`` signals would run the server's handler and live on, and an event loop's wakeup
    descriptor, which the child shares, would report the child's signal to the parent.
    """
    _HANDLERS.append({number: signal.getsignal(number) for number in SIGNALS})
    try:
        yield
    finally:
        _HANDLERS.pop()


def _before() -> None:
    # A signal that arrives between the fork and _after_in_child would still run the parent's handler.
    if _HANDLERS:
        _BLOCKED.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _unblock() -> None:
    mask = getattr(_BLOCKED, "mask", None)
    if mask is not None:
        _BLOCKED.mask = None
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_in_child() -> None:
    if _HANDLERS:
        with suppress(ValueError, OSError):
            signal.set_wakeup_fd(-1)
        for number, handler in _HANDLERS[0].items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        _HANDLERS.clear()
    if _DESCRIPTORS:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for descriptor in _DESCRIPTORS:
            os.dup2(null, descriptor, inheritable=False)
        os.close(null)
        _DESCRIPTORS.clear()
    for callback in _CALLBACKS:
        callback()
    _unblock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_unblock, after_in_child=_after_in_child)
