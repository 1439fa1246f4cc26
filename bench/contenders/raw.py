"""The limit: bytes from one process into a fresh buffer of another, with nothing decoded and nothing checked.

The same number of bytes as framewire's body, ``_row_id`` included.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

_CHUNKS = {False: 64 << 10, True: 1 << 20}
"""Bytes asked of one ``recv_into``, by whether ``sendfile`` sends: what was fastest for each, so that they make the higher limit
(``sendall``: 2.0 GB/s at 1 MiB; ``sendfile``: 1.5 GB/s at 64 KiB)."""


class Server:
    def __init__(self, *, sendfile: bool, reno: bool, host: str) -> None:
        self._sendfile, self._reno = sendfile, reno
        self._body: Any = b""
        self._fd = -1
        self._listener = socket.create_server((host, 0), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def publish(self, table: pa.Table) -> None:
        numbered = table.add_column(0, "_row_id", pa.array(np.arange(table.num_rows)))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, numbered.schema) as writer:
            writer.write_table(numbered)
        self._body = memoryview(sink.getvalue())
        if self._sendfile:
            self._fd = os.memfd_create("bench-raw")
            done = 0
            while done < len(self._body):
                done += os.write(self._fd, self._body[done:])

    def handles(self, count: int) -> list[str]:
        host, port = self._listener.getsockname()
        return [f"{host}:{port}"] * count

    def _accept(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            if self._reno:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            while sock.recv(1):
                size = len(self._body)
                sock.sendall(struct.pack(">Q", size))
                if not self._sendfile:
                    sock.sendall(self._body)
                    continue
                sent = 0
                while sent < size:
                    sent += os.sendfile(sock.fileno(), self._fd, sent, size - sent)


class Client:
    def __init__(self, *, sendfile: bool) -> None:
        self._kept = threading.local()
        self._chunk = _CHUNKS[sendfile]

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pa.Buffer:
        sock = getattr(self._kept, "sock", None)
        if sock is None:
            host, _, port = handle.partition(":")
            sock = self._kept.sock = socket.create_connection((host, int(port)))
        sock.sendall(b"g")
        size = struct.unpack(">Q", sock.recv(8, socket.MSG_WAITALL))[0]
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer)
        got = 0
        while got < size:
            count = sock.recv_into(view[got : got + self._chunk])
            if not count:
                raise ConnectionError("the raw server went away")
            got += count
        return buffer


def make_server(*, sendfile: bool = False, reno: bool = False, host: str = "127.0.0.1") -> Server:
    return Server(sendfile=sendfile, reno=reno, host=host)


def make_client(*, sendfile: bool = False, reno: bool = False) -> Client:
    return Client(sendfile=sendfile)
