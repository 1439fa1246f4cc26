"""Connections: dialled to a checked address, kept while idle, never shared with a forked child."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Final

from framewire.errors import LifecycleError, TransferDeniedError, TransferFailedError
from framewire.host.addresses import parse_address

_MAX_IDLE_PER_PEER: Final = 8
"""As many as fetches run at once against one peer; more would only hold the peer's connection slots."""
_MAX_IDLE_SECONDS: Final = 30.0
"""Longer than most servers keep a connection (uvicorn: 5 s), shorter than most firewalls forget one."""


@dataclass(frozen=True)
class Peer:
    """What a kept connection must agree on to be used again: the name as well, since TLS verified that name."""

    scheme: str
    host: str
    port: int
    address: str


class Pool:
    """Idle connections by peer, last in first out. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[Peer, list[tuple[float, socket.socket]]] = {}
        self._closed = False
        _POOLS.add(self)

    def take(self, peer: Peer) -> socket.socket | None:
        """A kept connection that is still silent and open, or None.

        Raises:
            LifecycleError: The pool was closed.
        """
        while True:
            with self._lock:
                if self._closed:
                    raise LifecycleError("The transport was closed.", hint="Make a new DirectTransport.")
                kept = self._idle.get(peer)
                if not kept:
                    return None
                _, sock = kept.pop()
            if is_silent(sock):
                return sock
            sock.close()

    def give(self, peer: Peer, sock: socket.socket) -> None:
        """Keep a connection for the next exchange, or close it where enough are kept."""
        now = time.monotonic()
        with self._lock:
            stale = self._pop_older_than(now - _MAX_IDLE_SECONDS)
            kept = self._idle.setdefault(peer, [])
            if self._closed or len(kept) >= _MAX_IDLE_PER_PEER:
                stale.append(sock)
            else:
                kept.append((now, sock))
        for old in stale:
            old.close()

    def close(self) -> None:
        """Close every idle connection; those in use are closed when their exchange ends."""
        with self._lock:
            self._closed = True
            stale = self._pop_older_than(float("inf"))
        for sock in stale:
            sock.close()

    def _pop_older_than(self, since: float) -> list[socket.socket]:
        stale = [sock for kept in self._idle.values() for put, sock in kept if put < since]
        left = {peer: [pair for pair in kept if pair[0] >= since] for peer, kept in self._idle.items()}
        self._idle = {peer: kept for peer, kept in left.items() if kept}
        return stale

    def _forget(self) -> None:
        """In a forked child: the connections are the parent's, and two processes on one would mix their bytes."""
        self._lock = threading.Lock()
        for sock in self._pop_older_than(float("inf")):
            sock.close()


_POOLS: Final[weakref.WeakSet[Pool]] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def is_silent(sock: socket.socket) -> bool:
    """Whether a kept connection neither was closed by the peer nor holds bytes that nobody asked for."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return False
    try:
        sock.setblocking(False)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def dial(peer: Peer, *, timeout_seconds: float) -> socket.socket:
    """A TCP connection to ``peer.address``, which is never resolved. The caller sets what timeout comes next.

    Raises:
        TransferDeniedError: The address is no IP literal.
        TransferFailedError: Nobody answered.
        TimeoutError: Nobody answered in time.
    """
    address = parse_address(peer.address)
    if address is None:
        raise TransferDeniedError(
            "The transport was given no checked address to connect to.",
            hint="Take the address that PeerPolicy.check returned; names are not resolved again.",
        )
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(timeout_seconds, 0.001))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((str(address), peer.port))
    except TimeoutError:
        sock.close()
        raise
    except OSError as exc:
        sock.close()
        reason = exc.strerror or type(exc).__name__
    except BaseException:
        sock.close()
        raise
    else:
        return sock
    raise TransferFailedError(
        f"No connection to the resource server: {reason}.",
        hint="It may have stopped; call the resource tool again for a fresh resource_url.",
    )


def wrap_tls(sock: socket.socket, context: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """TLS around a connected socket, its handshake still to be done (under a watch). ``host`` is what gets verified."""
    return context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
