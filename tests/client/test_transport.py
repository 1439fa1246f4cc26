from __future__ import annotations

import gc
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from framewire.client import DirectTransport, PeerPolicy, _pool, fetch
from framewire.client._call import Call, Headers, Request, Response
from framewire.errors import (
    LifecycleError,
    TooLargeError,
    TransferDeniedError,
    TransferFailedError,
    TransferTimeoutError,
)
from tests.client.scripted import OK, PATH, TOKEN, Server, answering, length, once, serving

SOON = 0.4
"""Seconds of the deadlines that are meant to pass."""


def request(
    server: Server | int,
    method: str = "GET",
    *,
    seconds: float = 20.0,
    host: str = "127.0.0.1",
    scheme: str = "http",
    content: bytes = b"",
    address: str = "127.0.0.1",
    path: str = PATH,
    headers: tuple[tuple[bytes, bytes], ...] | None = None,
    max_bytes: int = 8 << 30,
    **more: Any,
) -> Call:
    port = server if isinstance(server, int) else server.port
    host_header = ((b"Host", f"{host}:{port}".encode()),)
    peer = _pool.Peer(scheme, host, port, address)
    sent = Request(method, host_header if headers is None else headers, content, path)
    return Call(sent, peer, time.monotonic() + seconds, max_bytes, **more)


@pytest.fixture
def transport() -> Iterator[DirectTransport]:
    one = DirectTransport()
    yield one
    one.close()


def no_secret(error: BaseException) -> None:
    """Neither the text nor a traceback with all its contexts holds the token or the path."""
    seen: BaseException | None = error
    while seen is not None:
        for text in (str(seen), repr(seen)):
            assert TOKEN not in text
            assert "/s2sp/" not in text
        seen = seen.__cause__ or seen.__context__


# --- bodies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 65_000, 65_536, 1 << 20, (3 << 20) + 17])
def test_a_body_lands_in_one_buffer(transport: DirectTransport, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    with serving(answering(length(body))) as server:
        response = transport.send(request(server))
    buffer = response.body
    assert isinstance(buffer, pa.Buffer)
    assert buffer.size == size
    assert buffer.to_pybytes() == body
    assert response.status == 200
    assert response.headers["content-length"] == str(size)


def test_headers_in_any_case_and_repeated(transport: DirectTransport) -> None:
    answer = OK + b"S2SP-Rows: 7\r\nvary: Accept\r\nVARY:  S2SP-Types \r\nx-empty:\r\nContent-Length: 0\r\n\r\n"
    with serving(answering(answer)) as server:
        headers = transport.send(request(server)).headers
    assert headers["s2sp-rows"] == headers["S2SP-Rows"] == headers.get("S2sp-Rows") == "7"
    assert headers["Vary"] == "Accept, S2SP-Types"
    assert headers["x-empty"] == ""
    assert "VARY" in headers
    assert "x-other" not in headers


def test_the_answer_may_come_in_any_pieces(transport: DirectTransport) -> None:
    body = b"0123456789" * 3

    def script(server: Server, sock: socket.socket, number: int) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while server.read_request(sock):
            for byte in length(body):
                sock.sendall(bytes([byte]))

    with serving(script) as server:
        for _ in range(3):
            assert bytes(transport.send(request(server)).body) == body
        assert server.connections == 1


def test_the_body_is_received_without_a_copy_and_goes_with_the_response(transport: DirectTransport) -> None:
    body = b"x" * (8 << 20)
    with serving(answering(length(body))) as server:
        before = pa.total_allocated_bytes()
        response = transport.send(request(server))
        assert pa.total_allocated_bytes() - before == len(body)
        gc.disable()  # nothing may need the cycle collector
        try:
            del response
            assert pa.total_allocated_bytes() == before
        finally:
            gc.enable()


def test_the_request_is_sent_as_built(transport: DirectTransport) -> None:
    with serving(answering(length(b""))) as server:
        transport.send(request(server, "POST", host="data.test", content=b'{"row_ids": []}'))
        sent = server.requests[0]
    assert sent.startswith(b"POST " + PATH.encode() + b" HTTP/1.1\r\n")
    assert b"\r\nHost: data.test:%d\r\n" % server.port in sent
    assert sent.endswith(b'\r\n\r\n{"row_ids": []}')
    assert sent.count(b"\r\n") == 4  # Host and Content-Length, and nothing that the caller did not ask for


def test_bodyless_answers(transport: DirectTransport) -> None:
    with serving(
        answering(
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            length(b"abc"),
        )
    ) as server:
        assert transport.send(request(server)).status == 204
        assert transport.send(request(server)).body.size == 0
        assert bytes(transport.send(request(server)).body) == b"abc"
        assert server.connections == 1


def test_interim_answers_are_skipped(transport: DirectTransport) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    with serving(answering(interim + length(b"abc"))) as server:
        assert bytes(transport.send(request(server)).body) == b"abc"
    with serving(once(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)) as server, pytest.raises(TransferFailedError):
        transport.send(request(server))


@pytest.mark.parametrize("chunks", [[], [b"abc"], [b"a" * 70_000, b"b", b"c" * (1 << 20)], [b"x"] * 5000])
def test_chunked_bodies(transport: DirectTransport, chunks: list[bytes]) -> None:
    body = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    answer = OK + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\nTrailer: x\r\n\r\n"
    with serving(answering(answer)) as server:
        for _ in range(2):
            response = transport.send(request(server))
            assert response.body.to_pybytes() == b"".join(chunks)
        assert server.connections == 1


def test_a_redirect_is_an_answer_and_nothing_more(transport: DirectTransport) -> None:
    with serving(answering(length(b"secret"))) as other:
        location = b"Location: http://127.0.0.1:%d/s2sp/data/t\r\nContent-Length: 0\r\n\r\n" % other.port
        for status in (b"301 Moved", b"302 Found", b"303 See Other", b"307 Temporary", b"308 Permanent"):
            with serving(answering(b"HTTP/1.1 " + status + b"\r\n" + location)) as server:
                response = transport.send(request(server))
                assert response.status == int(status[:3])
                assert bytes(response.body) == b""
                assert server.connections == 1
        assert other.connections == 0


def test_proxies_of_the_environment_are_not_used(transport: DirectTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answering(length(b"proxied"))) as proxy, serving(answering(length(b"direct"))) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert bytes(transport.send(request(server)).body) == b"direct"
        assert proxy.connections == 0


# --- what is refused ------------------------------------------------------------------------------------------------

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BROKEN = {
    "nothing": (b"", "before it answered"),
    "half a head": (OK + b"Content-Len", "before its headers were complete"),
    "no body": (OK + b"Content-Length: 10\r\n\r\n", "after 0 of 10 body bytes"),
    "half a body": (OK + b"Content-Length: 10\r\n\r\nabcd", "after 4 of 10 body bytes"),
    "half a large body": (OK + b"Content-Length: 900000\r\n\r\n" + b"x" * 300_000, "after 300000 of 900000 body bytes"),
    "no last chunk": (CHUNKED + b"4\r\nabcd\r\n", "after 4 body bytes, without a last chunk"),
    "half a chunk": (CHUNKED + b"8\r\nabcd", "after 4 body bytes"),
    "no end of trailers": (CHUNKED + b"4\r\nabcd\r\n0\r\n", "after 4 body bytes"),
    "bad chunk": (CHUNKED + b"4\r\nabcd\r\nzz\r\n", "malformed after 4 body bytes"),
    "chunk with another length": (CHUNKED + b"4\r\nabcdef\r\n0\r\n\r\n", "malformed"),
    "neither length nor chunks": (OK + b"Server: x\r\n\r\nabcd", "either a Content-Length or chunks"),
    "http 1.0": (b"HTTP/1.0 200 OK\r\n\r\nabcd", "either a Content-Length or chunks"),
    "both": (OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", "either"),
    "two lengths": (OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", "well-formed"),
    "length that is none": (OK + b"Content-Length: 4x\r\n\r\nabcd", "well-formed"),
    "negative length": (OK + b"Content-Length: -1\r\n\r\n", "well-formed"),
    "signed length": (OK + b"Content-Length: +4\r\n\r\nabcd", "well-formed"),
    "other coding": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "well-formed"),
    "gzip": (OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", "content coding"),
    "br of an error": (b"HTTP/1.1 502 x\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nabcd", "content coding"),
    "not http": (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP"),
    "http 0.9": (b"<html></html>\r\n\r\n", "not HTTP"),
    "no status": (b"HTTP/1.1 OK\r\n\r\n", "well-formed"),
    "bad header": (OK + b"no colon\r\n\r\n", "well-formed"),
    "header that echoes": (OK + b"X " + PATH.encode() + b"\r\n\r\n", "well-formed"),
    "switching protocols": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "well-formed"),
    "101 headers": (OK + b"".join(b"X-%d: y\r\n" % i for i in range(101)) + b"\r\n", "more than 100 headers"),
    "70 KiB of a header": (OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n", "above 64 KiB"),
    "endless header": (OK + b"X: " + b"y" * 200_000, "above 64 KiB"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_whole_answer_is_an_error(transport: DirectTransport, name: str) -> None:
    answer, text = BROKEN[name]
    with serving(once(answer)) as server:
        with pytest.raises(TransferFailedError, match=text) as caught:
            transport.send(request(server))
        assert server.connections == 1
    no_secret(caught.value)
    assert not isinstance(caught.value, TooLargeError)


def test_a_reset_says_how_far_the_body_came(transport: DirectTransport) -> None:
    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(OK + b"Content-Length: 10\r\n\r\n")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with serving(script) as server, pytest.raises(TransferFailedError, match="before|after 0 of 10"):
        transport.send(request(server))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (OK + b"Content-Length: 1001\r\n\r\n", "1001 bytes, above the limit of 1000"),
        (OK + b"Content-Length: 99999999999999999999\r\n\r\n", "above the limit"),
        (CHUNKED + b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", "above the limit of 1000 bytes"),
        (CHUNKED + b"ffffffffffff\r\n" + b"x" * 2000, "above the limit of 1000 bytes"),
    ],
)
def test_a_body_above_the_limit_is_refused_before_it_is_allocated(
    transport: DirectTransport, answer: bytes, text: str
) -> None:
    with serving(answering(answer)) as server:
        before = pa.total_allocated_bytes()
        with pytest.raises(TooLargeError, match=text) as caught:
            transport.send(request(server, max_bytes=1000))
        assert pa.total_allocated_bytes() <= before  # what earlier tests left may be freed meanwhile
        assert server.closed_by_client.wait(10)  # the rest is not drained
    no_secret(caught.value)


def test_the_limit_itself_is_allowed(transport: DirectTransport) -> None:
    with serving(answering(length(b"x" * 1000), CHUNKED + b"3e8\r\n" + b"x" * 1000 + b"\r\n0\r\n\r\n")) as server:
        for _ in range(2):
            assert len(bytes(transport.send(request(server, max_bytes=1000)).body)) == 1000


@pytest.mark.parametrize("head", [b"Content-Length: 65537", b"Transfer-Encoding: chunked", b"Content-Length: 2000000"])
def test_an_error_answer_is_short_whatever_the_limit(head: bytes) -> None:
    with serving(answering(b"HTTP/1.1 500 x\r\n" + head + b"\r\n\r\n")) as server:
        origin = f"http://127.0.0.1:{server.port}"
        with pytest.raises(TransferFailedError, match="status 500"):
            fetch(origin + PATH, policy=PeerPolicy(allow=[origin]))
        assert server.closed_by_client.wait(10)  # nothing was waited for


def test_a_body_that_memory_cannot_hold_is_an_error_of_ours(transport: DirectTransport) -> None:
    answer = OK + b"Content-Length: %d\r\n\r\n" % (1 << 61)
    with serving(answering(answer)) as server, pytest.raises(TooLargeError, match="not enough memory"):
        transport.send(request(server, max_bytes=1 << 62))


def test_the_head_is_checked_before_the_body(transport: DirectTransport) -> None:
    seen: list[tuple[int, str]] = []

    def refuse(status: int, headers: Headers) -> None:
        seen.append((status, headers["s2sp-rows"]))
        raise TransferFailedError("Not these.")

    with serving(answering(OK + b"S2SP-Rows: 9\r\nContent-Length: 100000000\r\n\r\n")) as server:
        before = pa.total_allocated_bytes()
        with pytest.raises(TransferFailedError, match="Not these"):
            transport.send(request(server, check_head=refuse))
        assert seen == [(200, "9")]
        assert pa.total_allocated_bytes() == before
        assert server.closed_by_client.wait(10)


def test_no_connection_is_an_error_without_the_url(transport: DirectTransport) -> None:
    with serving(answering(length(b""))) as server:
        pass
    with pytest.raises(TransferFailedError, match="No connection") as caught:
        transport.send(request(server))
    no_secret(caught.value)


@pytest.mark.parametrize("address", ["localhost", "data.test", "127.1", "", "fe80::1%lo"])
def test_a_name_is_never_resolved(transport: DirectTransport, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*args: object, **kwargs: object) -> None:
        raise AssertionError("resolved")

    with serving(answering(length(b""))) as server, monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(TransferDeniedError):
            transport.send(request(server, address=address))
        with pytest.raises(TransferDeniedError):
            transport.send(request(server, host="localhost", address="localhost"))
        assert bytes(transport.send(request(server)).body) == b""
        assert server.connections == 1


def test_a_malformed_request_is_not_sent(transport: DirectTransport) -> None:
    with serving(answering(length(b""))) as server:
        bad = request(server, headers=((b"Host", b"x"), (b"X", b"a\r\nY: b")))
        with pytest.raises(TransferFailedError, match="well-formed") as caught:
            transport.send(bad)
        assert server.requests == []
    no_secret(caught.value)


def test_a_refusal_that_comes_before_the_request_is_read(transport: DirectTransport) -> None:
    def script(server: Server, sock: socket.socket, number: int) -> None:
        sock.recv(100)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    with serving(script) as server:
        response = transport.send(request(server, "POST", content=b"x" * (8 << 20)))
        assert (response.status, bytes(response.body)) == (413, b"{}")


# --- deadlines ------------------------------------------------------------------------------------------------------


def dribble(start: bytes, piece: bytes) -> Callable[[Server, socket.socket, int], None]:
    """One piece per 50 ms, for ever: no single ``recv`` ever waits long."""

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(start)
        while not server.ended.wait(0.05):
            sock.sendall(piece)

    return script


def stall(server: Server, sock: socket.socket, number: int) -> None:
    server.ended.wait()


def flood(server: Server, sock: socket.socket, number: int) -> None:
    """Never silent, even after its peer has shut the connection down."""
    server.read_request(sock)
    sock.sendall(CHUNKED)
    while not server.ended.is_set():
        sock.sendall(b"1\r\nx\r\n" * 10_000)


STALLING = {
    "flood of small chunks": flood,
    "dribbled head": dribble(OK + b"X: ", b"y"),
    "dribbled body": dribble(OK + b"Content-Length: 100000\r\n\r\n", b"y"),
    "dribbled chunks": dribble(CHUNKED, b"1\r\nx\r\n"),
    "dribbled interim": dribble(b"", b"HTTP/1.1 100 C"),
    "silence": dribble(b"", b""),
    "silence in the body": dribble(OK + b"Content-Length: 10\r\n\r\nabc", b""),
    "request not read": stall,
}


@pytest.mark.parametrize("name", STALLING)
def test_the_deadline_ends_every_stall(transport: DirectTransport, name: str) -> None:
    content = b"x" * (32 << 20) if name == "request not read" else b""
    with serving(STALLING[name]) as server:
        began = time.monotonic()
        with pytest.raises(TransferTimeoutError) as caught:
            transport.send(request(server, "POST", seconds=SOON, content=content))
        took = time.monotonic() - began
        assert SOON <= took < SOON + 5
    no_secret(caught.value)
    if name == "dribbled body":
        assert "of 100000 body bytes" in str(caught.value)


def test_a_deadline_that_has_passed_connects_to_nobody(transport: DirectTransport) -> None:
    with serving(answering(length(b""))) as server:
        with pytest.raises(TransferTimeoutError):
            transport.send(request(server, seconds=-1))
        assert server.requests == []


def test_the_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []

    def connect(sock: socket.socket, address: object) -> None:
        waits.append(sock.gettimeout())
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", connect)
    transport = DirectTransport(connect_timeout_seconds=2.5)
    with pytest.raises(TransferFailedError, match=r"within 2\.5 s"):
        transport.send(request(1))
    near = request(1, seconds=1)
    with pytest.raises(TransferFailedError):
        transport.send(near)
    assert waits[0] == 2.5
    assert waits[1] is not None
    assert 0 < waits[1] <= 1


def test_exchanges_end_at_their_own_deadlines_without_further_threads(transport: DirectTransport) -> None:
    ended: list[float] = []
    counts: list[int] = []

    def fetch(seconds: float) -> None:
        with pytest.raises(TransferTimeoutError):
            transport.send(request(server, seconds=seconds))
        ended.append(seconds)
        counts.append(threading.active_count())

    with serving(stall) as server:
        threads = [threading.Thread(target=fetch, args=(seconds,)) for seconds in (1.2, 0.7, 0.2)]
        before = threading.active_count()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        served = len(server._threads)
    assert ended == [0.2, 0.7, 1.2]
    assert max(counts) <= before + len(threads) + served


# --- connections ----------------------------------------------------------------------------------------------------


def test_connections_are_kept_per_peer() -> None:
    with serving(answering(length(b"a"))) as server, DirectTransport() as transport:
        for _ in range(5):
            transport.send(request(server))
        assert server.connections == 1
        transport.send(request(server, host="data.test"))  # the same address under another name
        assert server.connections == 2
        transport.send(request(server, host="data.test"))
        assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Connection: close\r\nContent-Length: 1\r\n\r\na",
        OK + b"Connection: x, Close\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        length(b"a") + b"stray",
        length(b"a") + length(b"b"),
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nstray",
    ],
)
def test_connections_that_may_not_be_kept(transport: DirectTransport, answer: bytes) -> None:
    with serving(answering(answer)) as server:
        for turn in range(3):
            assert bytes(transport.send(request(server)).body) == b"a"
            assert server.connections == turn + 1


def test_stray_bytes_that_come_later_are_not_the_next_answer(transport: DirectTransport) -> None:
    read, stray = threading.Event(), threading.Event()

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(length(b"a"))
        if number == 0:
            read.wait()
            sock.sendall(length(b"stray"))
            stray.set()
            server.ended.wait()

    with serving(script) as server:
        assert bytes(transport.send(request(server)).body) == b"a"
        read.set()
        assert stray.wait(10)
        assert bytes(transport.send(request(server)).body) == b"a"
        assert server.connections == 2


def keep_then_close(server: Server, sock: socket.socket, number: int) -> None:
    """The first connection answers once, takes another request and closes without a byte."""
    server.read_request(sock)
    sock.sendall(length(b"%d" % number))
    server.read_request(sock)


def test_a_kept_connection_that_went_stale_is_tried_once_more(
    transport: DirectTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(keep_then_close) as server:
        assert bytes(transport.send(request(server, "POST", content=b"one")).body) == b"0"
        assert bytes(transport.send(request(server, "POST", content=b"two")).body) == b"1"
        assert [sent.rpartition(b"\r\n\r\n")[2] for sent in server.requests] == [b"one", b"two", b"two"]


def test_a_connection_closed_while_idle_is_not_even_tried(transport: DirectTransport) -> None:
    closed = threading.Event()

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(length(b"%d" % number))
        sock.close()
        closed.set()

    with serving(script) as server:
        transport.send(request(server))
        assert closed.wait(10)
        assert bytes(transport.send(request(server)).body) == b"1"
        assert len(server.requests) == 2


def test_a_new_connection_that_breaks_is_not_tried_again(transport: DirectTransport) -> None:
    with serving(once(b"")) as server:
        with pytest.raises(TransferFailedError):
            transport.send(request(server))
        assert server.connections == 1


def test_a_kept_connection_that_breaks_in_the_answer_is_not_tried_again(transport: DirectTransport) -> None:
    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(length(b"a"))
        server.read_request(sock)
        sock.sendall(b"H")

    with serving(script) as server:
        transport.send(request(server))
        with pytest.raises(TransferFailedError, match="headers"):
            transport.send(request(server))
        assert server.connections == 1


def test_the_deadline_of_a_kept_connection_is_its_own(transport: DirectTransport) -> None:
    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        sock.sendall(length(b"a"))
        server.read_request(sock)
        server.ended.wait()

    with serving(script) as server:
        transport.send(request(server))
        with pytest.raises(TransferTimeoutError):  # and not a second try with no time left
            transport.send(request(server, seconds=SOON))
        assert server.connections == 1


def test_threads_share_a_transport(transport: DirectTransport) -> None:
    bodies = [bytes([i]) * 200_000 for i in range(8)]

    def script(server: Server, sock: socket.socket, number: int) -> None:
        while sent := server.read_request(sock):
            sock.sendall(length(bodies[int(sent.rpartition(b"\r\n\r\n")[2])]))

    wrong: list[object] = []

    def work(i: int) -> None:
        for _ in range(20):
            got = bytes(transport.send(request(server, "POST", content=b"%d" % i)).body)
            if got != bodies[i]:
                wrong.append(i)

    with serving(script) as server:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(server.requests) == 160
        assert server.connections <= 8


def test_only_so_many_idle_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = _pool.Pool()
    pairs = [socket.socketpair() for _ in range(12)]
    peer, other = (_pool.Peer("http", "h", port, "127.0.0.1") for port in (1, 2))
    for mine, _ in pairs:
        pool.give(peer, mine)
    assert sum(mine.fileno() == -1 for mine, _ in pairs) == 4
    monkeypatch.setattr(time, "monotonic", lambda: float(10**9))
    late = socket.socketpair()
    pool.give(other, late[0])  # whoever is idle for too long goes when another comes
    assert sum(mine.fileno() == -1 for mine, _ in pairs) == 12
    pool.close()
    pool.give(other, late[1])
    assert late[1].fileno() == -1  # nothing is kept in a closed pool
    for sock in (theirs for _, theirs in pairs):
        sock.close()


def test_close_ends_kept_connections_and_refuses_later_ones(transport: DirectTransport) -> None:
    with serving(answering(length(b"a"))) as server:
        transport.send(request(server))
        transport.close()
        assert server.closed_by_client.wait(10)
        with pytest.raises(LifecycleError):
            transport.send(request(server))
        transport.close()


def test_a_transport_that_is_dropped_closes_its_connections() -> None:
    with serving(answering(length(b"a"))) as server:
        transport = DirectTransport()
        transport.send(request(server))
        del transport  # a ResourceWarning would fail this test
        gc.collect()
        assert server.closed_by_client.wait(10)


def test_an_interrupt_closes_the_connection(transport: DirectTransport) -> None:
    def interrupt(status: int, headers: Headers) -> None:
        raise KeyboardInterrupt

    with serving(answering(length(b"a"))) as server:
        with pytest.raises(KeyboardInterrupt):
            transport.send(request(server, check_head=interrupt))
        assert server.closed_by_client.wait(10)


def test_a_subclass_may_alter_calls_and_see_responses() -> None:
    class Spy(DirectTransport):
        def send(self, call: Call) -> Response:
            call.request = call.request._replace(path="/other")
            seen.append(super().send(call))
            return seen[-1]

    seen: list[Response] = []
    with serving(answering(length(b"abc"))) as server, Spy() as transport:
        transport.send(request(server))
        assert server.requests[0].startswith(b"GET /other ")
        assert [bytes(response.body) for response in seen] == [b"abc"]


def test_an_interrupt_while_connecting_closes_the_socket(
    transport: DirectTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(sock: socket.socket, address: object) -> None:
        opened.append(sock)
        raise KeyboardInterrupt

    opened: list[socket.socket] = []
    monkeypatch.setattr(socket.socket, "connect", connect)
    with pytest.raises(KeyboardInterrupt):
        transport.send(request(1))
    assert [sock.fileno() for sock in opened] == [-1]


FORKING = """
import os, sys, time
from framewire.errors import TransferTimeoutError
from framewire.client import DirectTransport
from framewire.client._call import Call, Request
from framewire.client._pool import Peer

port = int(sys.argv[1])
transport = DirectTransport()

def ask(path, seconds=20.0):
    request = Request("GET", ((b"Host", b"127.0.0.1"),), path=f"/{path}")
    return transport.send(Call(request, Peer("http", "127.0.0.1", port, "127.0.0.1"), time.monotonic() + seconds, 1000))

ask("parent")
held = transport._pool._lock
held.acquire()  # as another thread might, at the moment of the fork
pid = os.fork()
if pid == 0:
    ask("child")
    try:
        ask("stall", 0.3)
    except TransferTimeoutError:
        os._exit(7)
    os._exit(1)
held.release()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
ask("parent")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_its_own_connections() -> None:
    seen: list[tuple[int, bytes]] = []

    def script(server: Server, sock: socket.socket, number: int) -> None:
        while sent := server.read_request(sock):
            seen.append((number, sent.split()[1]))
            if sent.split()[1] == b"/stall":
                server.ended.wait()
            sock.sendall(length(b"a"))

    with serving(script) as server:
        result = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-c", FORKING, str(server.port)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
    assert seen == [(0, b"/parent"), (1, b"/child"), (1, b"/stall"), (0, b"/parent")]


# --- TLS ------------------------------------------------------------------------------------------------------------

# A key that protects nothing, and its self-signed certificate for "data.test", good until 2120.
PAIR = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRDCjFdjNEdykzfjx
lwOOdlu0fFpToTLcEb1Sv+N/vNOhRANCAARU29OL1Udd755FzQrddpX2JaeckvoE
FLVJz92B24pdQfA2ED8PDlBKG1p/StuiRPldc2vU6OBx1DaCJeetUETK
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBnDCCAUKgAwIBAgIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA5mcmFtZXdp
cmUgdGVzdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowGTEXMBUG
A1UEAwwOZnJhbWV3aXJlIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARU
29OL1Udd755FzQrddpX2JaeckvoEFLVJz92B24pdQfA2ED8PDlBKG1p/StuiRPld
c2vU6OBx1DaCJeetUETKo3kwdzAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQE
AwIChDAdBgNVHQ4EFgQUmRc+zHi3vxBm640SOGGjvFsHjSgwHwYDVR0jBBgwFoAU
mRc+zHi3vxBm640SOGGjvFsHjSgwFAYDVR0RBA0wC4IJZGF0YS50ZXN0MAoGCCqG
SM49BAMCA0gAMEUCIGli829HT2oOm1Dl/nsFmAM/2Pf/DaVJEauyLvzq1hl3AiEA
i3k1A9W065Sf4/ps2fOSw9n8YDrSyZTbFv+zEKCj+Ds=
-----END CERTIFICATE-----
"""


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's context, and a client's that trusts it."""
    pair = tmp_path / "pair.pem"
    pair.write_text(PAIR)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair)
    return server, ssl.create_default_context(cafile=str(pair))


def tls_script(context: ssl.SSLContext, names: list[str | None]) -> Callable[[Server, socket.socket, int], None]:
    def note(sock: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: Any) -> None:
        names.append(name)

    context.set_servername_callback(note)

    def script(server: Server, sock: socket.socket, number: int) -> None:
        with context.wrap_socket(sock, server_side=True) as secure:
            while server.read_request(secure):
                secure.sendall(length(b"x" * 300_000))

    return script


def test_tls_checks_the_name_and_dials_the_address(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    names: list[str | None] = []
    with serving(tls_script(tls[0], names)) as server, DirectTransport(ssl_context=tls[1]) as transport:
        for _ in range(3):
            response = transport.send(request(server, host="data.test", scheme="https"))
            assert bytes(response.body) == b"x" * 300_000
        assert names == ["data.test"]
        assert server.connections == 1


@pytest.mark.parametrize("host", ["other.test", "127.0.0.1"])
def test_tls_refuses_a_certificate_for_another_name(tls: tuple[ssl.SSLContext, ssl.SSLContext], host: str) -> None:
    with serving(tls_script(tls[0], [])) as server, DirectTransport(ssl_context=tls[1]) as transport:
        with pytest.raises(TransferFailedError, match="certificate") as caught:
            transport.send(request(server, host=host, scheme="https"))
        assert server.requests == []
    no_secret(caught.value)


def test_tls_refuses_an_unknown_authority(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], transport: DirectTransport
) -> None:
    with serving(tls_script(tls[0], [])) as server:
        with pytest.raises(TransferFailedError, match="certificate"):
            transport.send(request(server, host="data.test", scheme="https"))
        assert server.requests == []


def test_tls_against_a_plain_server_and_silence(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], transport: DirectTransport
) -> None:
    def plain(server: Server, sock: socket.socket, number: int) -> None:
        sock.sendall(OK + b"Content-Length: 0\r\n\r\n")

    with serving(plain) as server, pytest.raises(TransferFailedError, match="TLS"):
        transport.send(request(server, host="data.test", scheme="https"))
    with serving(stall) as server, pytest.raises(TransferTimeoutError, match="TLS"):
        transport.send(request(server, host="data.test", scheme="https", seconds=SOON))


def test_the_deadline_under_tls(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    def script(server: Server, sock: socket.socket, number: int) -> None:
        with tls[0].wrap_socket(sock, server_side=True) as secure:
            server.read_request(secure)
            secure.sendall(OK + b"Content-Length: 100000\r\n\r\n")
            while not server.ended.wait(0.05):
                secure.sendall(b"y")

    with serving(script) as server, DirectTransport(ssl_context=tls[1]) as transport:
        slow = request(server, host="data.test", scheme="https", seconds=SOON)
        with pytest.raises(TransferTimeoutError, match="of 100000 body bytes"):
            transport.send(slow)


def test_a_tls_connection_cut_without_a_goodbye(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    def script(server: Server, sock: socket.socket, number: int) -> None:
        with tls[0].wrap_socket(sock, server_side=True) as secure:
            server.read_request(secure)
            secure.sendall(OK + b"Content-Length: 9\r\n\r\nabc")

    with serving(script) as server, DirectTransport(ssl_context=tls[1]) as transport:
        cut = request(server, host="data.test", scheme="https")
        with pytest.raises(TransferFailedError, match="after 3 of 9 body bytes"):
            transport.send(cut)
