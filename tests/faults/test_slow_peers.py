"""Connections that hold a server up: half a request, endless headers, a body that nobody reads."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import polars as pl
import pytest

from framewire.client import fetch
from framewire.plane import DataPlane
from framewire.serve import _guard
from tests.faults.forms import PATIENCE_SECONDS, until

LARGE = pl.DataFrame({"n": range(2_000_000)})


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataPlane]:
    # The rule is the same with shorter times: what is late is cut off, what is not is served.
    monkeypatch.setattr(_guard, "REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(_guard, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(_guard, "_TICK_SECONDS", 0.1)
    with DataPlane() as plane:
        yield plane


def _connect(plane: DataPlane) -> socket.socket:
    host, port = plane.base_url.removeprefix("http://").split(":")
    sock = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return sock


def _until_closed(sock: socket.socket) -> bytes:
    """What arrives until the server closes; fails by the socket's timeout if it never does."""
    received = b""
    try:
        while chunk := sock.recv(65536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /s2sp/hea",
        b"GET /s2sp/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
        b"POST /s2sp/data/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["silence", "half-line", "half-header", "half-body"],
)
def test_slow_requests_are_cut_off(plane: DataPlane, sent: bytes) -> None:
    with _connect(plane) as sock:
        sock.sendall(sent)
        answer = _until_closed(sock)
        assert b"200" not in answer


def test_a_second_request_is_watched_as_well(plane: DataPlane) -> None:
    with _connect(plane) as sock:
        sock.sendall(b"GET /s2sp/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200" in sock.recv(4096)
        sock.sendall(b"GET /s2")
        assert _until_closed(sock) == b""


def test_endless_headers_are_cut_off(plane: DataPlane) -> None:
    with _connect(plane) as sock:
        sock.sendall(b"GET /s2sp/health HTTP/1.1\r\n")
        with pytest.raises(OSError, match="."):  # noqa: PT012
            for _ in range(1000):
                sock.sendall(b"X-Long: " + b"a" * 4096 + b"\r\n")


def test_a_reader_that_stops_reading_is_cut_off_and_its_body_is_let_go(plane: DataPlane) -> None:
    handle = plane.publish(LARGE)
    path = handle.resource_url.removeprefix(plane.base_url)
    with _connect(plane) as sock:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/vnd.apache.arrow.stream\r\n\r\n"
        sock.sendall(request.encode())
        assert sock.recv(12) == b"HTTP/1.1 200"
        until(lambda: plane.stats().readers == 0, "the reader is let go")
    assert fetch(handle.resource_url).num_rows == 2_000_000
