"""A scripted HTTP server on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

TOKEN = "fw1" + "a2" * 16
PATH = f"/s2sp/data/{TOKEN}"
OK = b"HTTP/1.1 200 OK\r\n"

Script = Callable[[socket.socket, int], None]
"""What a server does with one connection, given its number from 0."""


class Server:
    """A scripted HTTP server on loopback; its connections end with the test."""

    def __init__(self, script: Script) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.requests: list[bytes] = []
        self.ended = threading.Event()
        self.closed_by_client = threading.Event()
        self.connections = 0
        self._script = script
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            sock, _ = self._listening.accept()
            if self.ended.is_set():
                sock.close()
                return
            self._open.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock, self.connections))
            self.connections += 1
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        with sock, suppress(OSError):
            self._script(sock, number)

    def read_request(self, sock: socket.socket) -> bytes:
        """One request, by Content-Length; empty where the client closed."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                self.closed_by_client.set()
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        size = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        while len(body) < size:
            body += sock.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return self.requests[-1]

    def close(self) -> None:
        self.ended.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._accepting.join()
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()


@contextmanager
def serving(script: Callable[[Server, socket.socket, int], None]) -> Iterator[Server]:
    server = Server(lambda sock, number: script(server, sock, number))
    try:
        yield server
    finally:
        server.close()


def answering(*answers: bytes) -> Callable[[Server, socket.socket, int], None]:
    """On every connection, one answer per request, the last one over and over."""

    def script(server: Server, sock: socket.socket, number: int) -> None:
        turn = 0
        while server.read_request(sock):
            sock.sendall(answers[min(turn, len(answers) - 1)])
            turn += 1

    return script


def once(answer: bytes) -> Callable[[Server, socket.socket, int], None]:
    """One answer, then the server closes."""

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(answer)

    return script


def length(body: bytes) -> bytes:
    return OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
