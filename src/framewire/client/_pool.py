"""Connections: dialled to a checked address, kept while idle, never shared with a forked child."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from framewire.client._cancellation import Cancellation
from framewire.errors import LifecycleError, TransferDeniedError, TransferFailedError
from framewire.host.addresses import parse_address

_MAX_IDLE_PER_PEER: Final = 8
"""As many as fetches run at once against one peer; more would only hold the peer's connection slots."""
_NO_LINGER: Final = struct.pack("ii", 1, 0)
_MAX_IDLE_SECONDS: Final = 30.0
"""Longer than most servers keep a connection (uvicorn: 5 s), shorter than most firewalls forget one."""


@dataclass(frozen=True)
class Peer:
    """Where a connection leads. A kept one is used again for an equal peer only: the name counts, since TLS verified it."""

    scheme: str
    host: str
    port: int
    address: str


class Pool:
    """Idle connections by peer, last in first out. Thread-safe."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._idle: dict[Peer, list[tuple[float, socket.socket]]] = {}
        self._closed = False

    def take(self, peer: Peer) -> socket.socket | None:
        """A kept connection that is still silent and open, or None.

        Raises:
            LifecycleError: The pool was closed.
        """
        while True:
            with self._own_lock():
                if self._closed:
                    raise LifecycleError("The transport was closed.", hint="Make a new DirectTransport.")
                connections = self._idle.get(peer)
                if not connections:
                    return None
                _, sock = connections.pop()
            if is_silent(sock):
                return sock
            sock.close()

    def give(self, peer: Peer, sock: socket.socket) -> None:
        """Keep a connection for the next exchange, or close it if enough are kept."""
        now = time.monotonic()
        with self._own_lock():
            stale = self._pop_older_than(now - _MAX_IDLE_SECONDS)
            connections = self._idle.setdefault(peer, [])
            if self._closed or len(connections) >= _MAX_IDLE_PER_PEER:
                stale.append(sock)
            else:
                connections.append((now, sock))
        for sock in stale:
            sock.close()

    def close(self) -> None:
        """Close every idle connection; those in use are closed when their exchange ends."""
        with self._own_lock():
            self._closed = True
            stale = self._pop_older_than(float("inf"))
        for sock in stale:
            sock.close()

    def _pop_older_than(self, since: float) -> list[socket.socket]:
        stale = [sock for idle in self._idle.values() for put, sock in idle if put < since]
        left = {peer: [pair for pair in idle if pair[0] >= since] for peer, idle in self._idle.items()}
        self._idle = {peer: idle for peer, idle in left.items() if idle}
        return stale

    def _own_lock(self) -> threading.Lock:
        """The pool's lock. A forked child starts anew: another thread of its parent may have held the lock, and two processes
        on one connection would mix their bytes.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()
            for sock in self._pop_older_than(float("inf")):
                sock.close()
        return self._lock


def is_silent(sock: socket.socket) -> bool:
    """Whether a kept connection is still open and holds no unexpected bytes."""
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


def dial(peer: Peer, *, timeout_seconds: float, cancellation: Cancellation) -> socket.socket:
    """Connect to ``peer.address``, which is never resolved. The caller sets the timeouts of what follows.

    Raises:
        TransferDeniedError: The address is not an IP literal.
        TransferFailedError: The connection was refused or failed.
        TimeoutError: The peer did not respond in time.
    """
    address = parse_address(peer.address)
    if address is None:
        raise TransferDeniedError(
            "The transport was given no checked address to connect to.",
            hint="Take the address that PeerPolicy.check returned; names are not resolved again.",
        )
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with cancellation.stopping(partial(shut_down, sock)):
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


def shut_down(sock: socket.socket) -> None:
    """End a connection, also one that is still being made; a thread that waits on it wakes up."""
    # The plain socket's method also under TLS: SSLSocket.shutdown drops its TLS state first, and the reader would then
    # take ciphertext for plain text. An OSError means that the peer was faster, or that connect() is still to come.
    with suppress(OSError):
        # Closing it then resets the connection: the server learns at once that nobody reads on, and waits for no reader.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
