"""A cancelled fetch ends wherever it waits: its socket is shut down, its thread is back, and its slot is free."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import httpx
import polars as pl
import pytest

from framewire import consume
from framewire.client import Options, PeerPolicy, fetch_async, fetch_table, in_thread
from framewire.client._cancellation import Cancellation
from framewire.client._failures import CallCancelledError
from framewire.frame import Form
from framewire.host.threads import FETCHING
from framewire.plane import DataPlane
from framewire.settings import Settings
from tests.client.scripted import OK, PATH, Server, serving

LONG = Settings(deadline_seconds=300.0)
"""No wait of these tests ends by its deadline."""
ENOUGH_SECONDS = 30.0
"""A thread that was not woken would hang for longer than this."""


def silent(server: Server, sock: socket.socket, number: int) -> None:
    server.read_request(sock)
    server.ended.wait()


def half_a_body(server: Server, sock: socket.socket, number: int) -> None:
    server.read_request(sock)
    sock.sendall(
        OK + b"Content-Type: application/vnd.apache.arrow.stream\r\nS2SP-Version: 1\r\nS2SP-Rows: 1\r\n"
        b"S2SP-Checksum: xxh3-128=0\r\nContent-Length: 100000\r\n\r\nhalf"
    )
    server.read_request(sock)


def breaking(server: Server, sock: socket.socket, number: int) -> None:
    server.read_request(sock)


def of(port: int, scheme: str = "http") -> tuple[str, PeerPolicy]:
    origin = f"{scheme}://127.0.0.1:{port}"
    return origin + PATH, PeerPolicy(allow=[origin])


def signalling(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> threading.Event:
    """An event that is set when ``owner.name`` is called."""
    called = threading.Event()
    original = getattr(owner, name)

    def spy(*args: Any) -> Any:
        called.set()
        return original(*args)

    monkeypatch.setattr(owner, name, spy)
    return called


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose connections are never made: the queue of the listener is full, so the kernel drops what comes."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def cancelled_when(reached: threading.Event, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Start ``work``, and cancel it once ``reached`` is set."""
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        assert await anyio.to_thread.run_sync(reached.wait, ENOUGH_SECONDS)
        group.cancel_scope.cancel()


def assert_it_ends(reached: threading.Event, url: str, policy: PeerPolicy, transport: Any = None) -> None:
    ended = threading.Event()

    def work(options: Options) -> None:
        try:
            fetch_table(options, url)
        finally:
            ended.set()

    async def main() -> None:
        await cancelled_when(reached, partial(in_thread, work, Options(LONG, policy, transport)))
        assert FETCHING.limiter.borrowed_tokens == 0
        assert await anyio.to_thread.run_sync(ended.wait, ENOUGH_SECONDS)

    asyncio.run(main())


def test_while_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framewire.client._options._SHARED_TRANSPORT._connect_timeout_seconds", 300.0)
    with full_backlog() as port:
        assert_it_ends(signalling(monkeypatch, socket.socket, "connect"), *of(port))


def test_in_the_tls_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(silent) as server:
        assert_it_ends(signalling(monkeypatch, ssl.SSLSocket, "do_handshake"), *of(server.port, "https"))


def test_before_the_response() -> None:
    asked = threading.Event()

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        asked.set()
        server.read_request(sock)

    with serving(script) as server:
        assert_it_ends(asked, *of(server.port))
        assert server.closed_by_client.wait(ENOUGH_SECONDS)


def test_in_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(half_a_body) as server:
        assert_it_ends(signalling(monkeypatch, socket.socket, "recv_into"), *of(server.port))
        assert server.closed_by_client.wait(ENOUGH_SECONDS)


def test_in_the_pause_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framewire.client._job._pause_seconds", lambda failures: 200.0)
    with serving(breaking) as server:
        assert_it_ends(signalling(monkeypatch, Cancellation, "sleep"), *of(server.port))
        assert len(server.requests) == 1


class NeverAnswering(httpx.AsyncBaseTransport):
    def __init__(self) -> None:
        self.asked, self.was_cancelled = threading.Event(), False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            self.was_cancelled = True
            raise
        raise AssertionError


def test_in_an_async_transport_of_the_users() -> None:
    transport = NeverAnswering()
    assert_it_ends(transport.asked, *of(1), transport)
    assert transport.was_cancelled


def test_a_cancelled_resolve_neither_joins_nor_converts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(consume, "to_form", lambda *args: calls.append("to_form"))
    with DataPlane() as plane:
        url = plane.publish(pl.DataFrame({"n": [1, 2, 3]})).resource_url
        options = Options(LONG)
        options.cancellation.cancel()
        with pytest.raises(CallCancelledError):
            consume.resolve_form(options, consume.Sources(resource_url=url), Form.POLARS_FRAME)
    assert calls == []


@pytest.mark.parametrize("how", ["scope", "task"])
def test_a_hundred_cancelled_fetches_leave_no_thread_and_no_slot_taken(how: str) -> None:
    blocked = threading.Semaphore(0)

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        blocked.release()
        server.ended.wait()

    def wait_for(count: int) -> None:
        for _ in range(count):
            assert blocked.acquire(timeout=ENOUGH_SECONDS)

    async def main(url: str, policy: PeerPolicy, good: str) -> None:
        for _ in range(4):
            work = partial(fetch_async, url, settings=LONG, policy=policy)
            if how == "scope":
                async with anyio.create_task_group() as group:
                    for _ in range(25):
                        group.start_soon(work)
                    await anyio.to_thread.run_sync(wait_for, 25)
                    group.cancel_scope.cancel()
            else:
                tasks = [asyncio.create_task(work()) for _ in range(25)]
                await anyio.to_thread.run_sync(wait_for, 25)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            assert FETCHING.limiter.borrowed_tokens == 0
            assert (await fetch_async(good)).num_rows == 3

    others = set(threading.enumerate())  # a worker of an earlier test may still wait for its event loop to end it
    with serving(script) as server, DataPlane() as plane:
        asyncio.run(main(*of(server.port), plane.publish(pl.DataFrame({"n": [1, 2, 3]})).resource_url))
        started = [thread for thread in threading.enumerate() if thread not in others]
        workers = [thread for thread in started if thread.name == "AnyIO worker thread"]
        for thread in workers:
            thread.join(ENOUGH_SECONDS)
        assert [thread for thread in workers if thread.is_alive()] == []
        assert len(server.requests) == 100
