"""A TCP proxy on loopback that drops a connection after so many bytes of an answer."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

_RESET = struct.pack("ii", 1, 0)


class DroppingProxy:
    """Passes bytes to and from ``port``; once :meth:`arm` was called, the next answers break after that many bytes.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        drops: Connections that it has dropped.
    """

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.drops = 0
        self._lock = threading.Lock()
        self._left: int | None = None
        self._reset = False
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    def arm(self, after_bytes: int, *, reset: bool) -> None:
        """Break the connection that carries the ``after_bytes``-th byte of an answer from now, by RST or by FIN."""
        with self._lock:
            self._left, self._reset = after_bytes, reset

    def disarm(self) -> None:
        with self._lock:
            self._left = None

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for sock in self._open:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._start(self._carry, client)

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._upstream)) as server:
            with self._lock:
                self._open |= {client, server}
            up = threading.Thread(target=self._up, args=(client, server), daemon=True)
            up.start()
            with suppress(OSError):
                self._down(server, client)
            with self._lock:
                self._open -= {client, server}
            reset = client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_RESET)) == _RESET
            # A socket that another thread reads is not closed by close(); and a reset is only sent by closing.
            for sock, how in ((server, socket.SHUT_RDWR), (client, socket.SHUT_RD if reset else socket.SHUT_RDWR)):
                with suppress(OSError):
                    sock.shutdown(how)
            up.join(10)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(1 << 16):
            with self._lock:
                drop = self._left is not None and self._left < len(data)
                if drop:
                    data, self._left = data[: self._left], None
                    self.drops += 1
                elif self._left is not None:
                    self._left -= len(data)
                reset = self._reset
            client.sendall(data)
            if drop:
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return
