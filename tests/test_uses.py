"""Handles of limited use over real sockets: what counts, what does not, and what a broken transfer costs."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import polars as pl
import pytest

from framewire.client import DirectTransport, PeerPolicy, fetch
from framewire.errors import ExpiredError, LeasedError, RevokedError, SettingError, SpentError
from framewire.plane import DataPlane
from framewire.settings import Settings
from framewire.store import MemoryStore

FRAME = pl.DataFrame({"n": range(400_000), "text": [f"a text longer than a view {i}" for i in range(400_000)]})
ARROW = {"Accept": "application/vnd.apache.arrow.stream", "S2SP-Types": "views"}
ANY = PeerPolicy(["http://127.0.0.1:*"])


class Clock:
    """Seconds that pass when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def plane(clock: Clock) -> Iterator[DataPlane]:
    with DataPlane(store=MemoryStore(1 << 30, clock=clock)) as plane:
        yield plane


def _ack(url: str, answer: httpx.Response, **changed: Any) -> httpx.Response:
    note = {
        "ack": answer.headers["s2sp-lease"],
        "rows": int(answer.headers["s2sp-rows"]),
        "checksum": answer.headers["s2sp-checksum"],
    }
    return httpx.post(url, json=note | changed)


def test_a_use_counts_when_the_client_acknowledges(plane: DataPlane) -> None:
    handle = plane.publish(FRAME, max_uses=2, tool="numbers")
    assert handle.max_uses == 2
    assert fetch(handle.resource_url, [0]).num_rows == 1
    assert fetch(handle.resource_url).num_rows == 400_000
    with pytest.raises(SpentError, match="has reached its limit of uses.*'numbers'"):
        fetch(handle.resource_url)
    assert plane.stats().held_bytes == 0


def test_head_and_refused_requests_spend_nothing(plane: DataPlane) -> None:
    url = plane.publish(FRAME, max_uses=1).resource_url
    for _ in range(10):
        assert httpx.head(url, headers=ARROW).status_code == 200
        assert httpx.post(url, json={"row_ids": [-1]}).status_code == 422
        assert httpx.post(url, json={"columns": ["x"]}).status_code == 422
    assert fetch(url).num_rows == 400_000


def test_of_two_exactly_one_wins_and_the_other_is_told_when_to_come(plane: DataPlane, clock: Clock) -> None:
    url = plane.publish(FRAME, max_uses=1).resource_url
    first = httpx.post(url, json={"row_ids": [0]}, headers=ARROW)
    second = httpx.post(url, json={"row_ids": [0]}, headers=ARROW)
    assert (second.status_code, second.json()["code"], second.headers["retry-after"]) == (409, "leased", "30")
    with pytest.raises(LeasedError):
        fetch(url, [0])
    assert _ack(url, first, checksum="xxh3-128=0").json()["code"] == "bad_argument"
    assert _ack(url, first, rows=2).json()["code"] == "bad_argument"
    assert _ack(url, first, rows="1").json()["code"] == "bad_argument"
    # The winner stalls, so a loser can still win; the winner's acknowledgement then comes too late.
    clock.now = 31.0
    third = httpx.post(url, json={"row_ids": [0]}, headers=ARROW)
    assert third.status_code == 200
    assert _ack(url, first).json()["code"] == "leased"
    assert _ack(url, third).json() == {"acknowledged": True, "counts": True}
    assert _ack(url, third).json() == {"acknowledged": True, "counts": False}
    assert _ack(url, first).json()["code"] == "spent"
    assert httpx.get(url).json()["code"] == "spent"


def test_a_reference_client_counts_when_its_answer_was_sent_whole(plane: DataPlane) -> None:
    url = plane.publish(FRAME.head(3), max_uses=1).resource_url
    assert httpx.post(url, json={}).json()["total_rows"] == 3
    again = httpx.post(url, json={})
    assert (again.status_code, again.json()["code"]) == (410, "spent")


def test_a_reference_client_that_goes_away_has_not_used_it(plane: DataPlane) -> None:
    url = plane.publish(FRAME.head(100_000), max_uses=1).resource_url
    host, port = plane.base_url.removeprefix("http://").split(":")
    path = url.removeprefix(plane.base_url)
    with socket.create_connection((host, int(port))) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        assert sock.recv(12) == b"HTTP/1.1 200"
    while plane.stats().readers:
        pass
    assert httpx.get(url, headers=ARROW).json()["code"] == "leased"


def test_expiry_and_revocation_stop_new_leases_not_running_ones(plane: DataPlane, clock: Clock) -> None:
    for end, error in ((lambda h: setattr(clock, "now", clock.now + 11), ExpiredError), (plane.revoke, RevokedError)):
        handle = plane.publish(FRAME, max_uses=2, ttl_seconds=10)
        running = httpx.get(handle.resource_url, headers=ARROW)
        end(handle)
        with pytest.raises(error):
            fetch(handle.resource_url)
        rest = ARROW | {
            "Range": "bytes=1000-",
            "If-Range": running.headers["etag"],
            "S2SP-Lease": running.headers["s2sp-lease"],
        }
        resumed = httpx.get(handle.resource_url, headers=rest)
        assert (resumed.status_code, resumed.content) == (206, running.content[1000:])
        assert _ack(handle.resource_url, running).json()["counts"] is True
        clock.now += 31
        plane._store.sweep()
        assert plane.stats().held_bytes == 0


def test_a_limited_handle_is_never_mapped(plane: DataPlane) -> None:
    url = plane.publish(FRAME, max_uses=1).resource_url
    assert "s2sp-map" not in httpx.get(url, headers=ARROW | {"S2SP-Map": "x"}).headers
    with pytest.raises(SettingError, match="max_uses"):
        plane.publish(FRAME, max_uses=0)


def test_parts_of_one_fetch_share_one_use() -> None:
    with DataPlane(Settings(max_selection_bytes=10_000)) as plane:
        handle = plane.publish(FRAME.head(2000), max_uses=1)
        wanted = list(range(0, 2000, 2))
        assert fetch(handle.resource_url, wanted)["_row_id"].to_pylist() == wanted
        with pytest.raises(SpentError):
            fetch(handle.resource_url)


# --- broken transfers -----------------------------------------------------------------------------------------------------


class CuttingProxy:
    """Forwards connections to a port, and cuts each answer after the next number of bytes on its list."""

    def __init__(self, port: int, cuts: list[int]) -> None:
        self._port, self._cuts = port, cuts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.create_connection(("127.0.0.1", self._port)) as server:
                self._one(client, server)

    def _one(self, client: socket.socket, server: socket.socket) -> None:
        budget = self._cuts.pop(0) if self._cuts else None
        pump = threading.Thread(target=self._forward, args=(client, server), daemon=True)
        pump.start()
        sent = 0
        while chunk := server.recv(65536):
            if budget is not None and sent + len(chunk) >= budget:
                client.sendall(chunk[: budget - sent])
                break
            client.sendall(chunk)
            sent += len(chunk)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        pump.join()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while chunk := client.recv(65536):
                self.requests.append(chunk)
                server.sendall(chunk)
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.mark.parametrize("max_uses", [None, 1])
@pytest.mark.parametrize(
    "cuts", [[200_000], [5, 300_000, 1_000_000], [100, 100]], ids=["once", "thrice", "in-the-head"]
)
def test_a_broken_transfer_goes_on_where_it_stopped(max_uses: int | None, cuts: list[int]) -> None:
    if max_uses and cuts[0] < 500:
        pytest.skip("a lease whose id never arrived is waited for: 30 s")
    with DataPlane() as plane:
        handle = plane.publish(FRAME, max_uses=max_uses)
        transport = DirectTransport()
        proxy = CuttingProxy(int(plane.base_url.rsplit(":", 1)[1]), list(cuts))
        try:
            url = handle.resource_url.replace(plane.base_url, f"http://127.0.0.1:{proxy.port}")
            table = fetch(url, policy=ANY, transport=transport)
            assert table["n"].to_pylist() == list(range(400_000))
            assert fetch(url, ["5-6"], policy=ANY, transport=transport).num_rows == 2 if max_uses is None else True
            if cuts[0] > 500:
                assert any(b"bytes=" in request for request in proxy.requests)
            if max_uses:
                with pytest.raises(SpentError):
                    fetch(url, policy=ANY, transport=transport)
        finally:
            transport.close()
            proxy.close()
