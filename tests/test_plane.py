"""Tables over a real socket: publish, fetch, resolve, both shells, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from framewire.client import DirectTransport, PeerPolicy, fetch, fetch_async
from framewire.consume import resolve, resolve_async
from framewire.errors import (
    ArgumentError,
    BadBodyError,
    ExpiredError,
    InvalidTokenError,
    LifecycleError,
    NoRoomError,
    OverloadedError,
    RevokedError,
    RowOutOfRangeError,
    SettingError,
    TransferDeniedError,
    TransferFailedError,
    UnknownColumnError,
    UnsupportedValueError,
)
from framewire.host import memfd, registry
from framewire.plane import DataPlane
from framewire.settings import Settings

FRAME = pl.DataFrame(
    {
        "carrier": ["UA", "AA", None, "DL"] * 250,
        "delay": [float(i) for i in range(1000)],
        "tail": [f"N{i:05d} with a text longer than a view" for i in range(1000)],
    }
)


@pytest.fixture(scope="module")
def plane() -> Iterator[DataPlane]:
    with DataPlane() as plane:
        yield plane


@pytest.fixture(scope="module")
def url(plane: DataPlane) -> str:
    return plane.publish(FRAME, tool="flights").resource_url


def test_a_frame_crosses_and_is_equal(url: str) -> None:
    frame = resolve(resource_url=url)
    assert frame["_row_id"].to_list() == list(range(1000))
    assert frame.drop("_row_id").equals(FRAME)
    assert frame.drop("_row_id").schema == FRAME.schema


def test_the_handle_tells_the_facts_and_hides_the_token(plane: DataPlane) -> None:
    handle = plane.publish(FRAME)
    token = handle.resource_url.rsplit("/", 1)[1]
    assert handle.total_rows == 1000
    assert list(handle.schema) == ["_row_id", "carrier", "delay", "tail"]
    assert handle.schema["delay"] == "double"
    assert token not in repr(handle)
    assert type(handle).from_dict(handle.to_dict()) == handle
    assert handle.resource_url.startswith(plane.base_url + "/s2sp/data/fw1")


@pytest.mark.parametrize("row_ids", [None, [], [999], [5, 3, 3, 0], ["5-9", 0], "998-", list(range(0, 1000, 3))])
@pytest.mark.parametrize("columns", [None, ["tail"], ["delay", "carrier"]])
def test_selections_equal_the_same_on_lists(url: str, row_ids: Any, columns: Any) -> None:
    table = fetch(url, row_ids, columns)
    rows = FRAME.with_row_index("_row_id").to_dicts()
    ids: Any = {"998-": [998, 999]}.get(row_ids) if isinstance(row_ids, str) else row_ids
    ids = list(range(1000)) if ids is None else [5, 6, 7, 8, 9, 0] if ids == ["5-9", 0] else ids
    names = ["_row_id", *(columns or FRAME.columns)]
    assert table.to_pylist() == [{name: rows[i][name] for name in names} for i in ids]
    assert asyncio.run(fetch_async(url, row_ids, columns)).equals(table)


def test_what_does_not_exist_is_named(url: str) -> None:
    with pytest.raises(RowOutOfRangeError, match="Row 1000 does not exist. Rows 0 to 999 exist"):
        fetch(url, [1000])
    with pytest.raises(UnknownColumnError, match="no column 'dely'. Did you mean 'delay'"):
        fetch(url, columns=["dely"])


def test_ended_handles_say_what_to_call(plane: DataPlane) -> None:
    handle = plane.publish(FRAME, tool="flights")
    plane.revoke(handle)
    with pytest.raises(RevokedError, match="Call the tool 'flights' again"):
        resolve(resource_url=handle.resource_url)
    with pytest.raises(InvalidTokenError, match="unknown"):
        resolve(resource_url=f"{plane.base_url}/s2sp/data/fw1{'a' * 32}")


def test_handles_expire_without_being_asked() -> None:
    gone = threading.Event()
    with DataPlane() as plane:
        original = plane._store.sweep

        def sweep() -> float | None:
            pause = original()
            if plane.stats().bodies == 0:
                gone.set()
            return pause

        plane._store.sweep = sweep  # type: ignore[method-assign]
        url = plane.publish(FRAME, ttl_seconds=0.05).resource_url
        gone.clear()
        assert gone.wait(120)
        assert plane.stats().held_bytes == 0
        with pytest.raises(ExpiredError):
            fetch(url)


def test_large_scattered_selections_arrive_in_parts() -> None:
    with DataPlane(Settings(max_selection_bytes=10_000)) as plane:
        url = plane.publish(FRAME).resource_url
        wanted = list(range(999, -1, -2))
        assert fetch(url, wanted)["_row_id"].to_pylist() == wanted


def test_over_budget_nothing_is_kept() -> None:
    with DataPlane(Settings(memory_budget_bytes=10_000, disk_budget_bytes=10_000)) as plane:
        with pytest.raises(NoRoomError, match="No room for .*FRAMEWIRE_DISK_BUDGET_BYTES"):
            plane.publish(FRAME)
        assert plane.stats().held_bytes == plane.stats().reserved_bytes == plane.stats().spilled_bytes == 0
        plane.publish(FRAME.head(3))


def _long_views(rows: int, order: Any = None) -> tuple[pa.Array, bytearray]:
    """``rows`` views of 33 bytes each into one buffer, which is returned too: what is written to it shows in the array."""
    text = b"a text that is longer than a view"
    data = bytearray(text * rows)
    words = np.zeros((rows, 4), np.int32)
    words[:, 0], words[:, 1] = len(text), np.frombuffer(text[:4], np.int32)
    words[:, 3] = np.arange(rows) * len(text)
    words = words if order is None else words[order].copy()
    return pa.Array.from_buffers(pa.string_view(), len(words), [None, pa.py_buffer(words), pa.py_buffer(data)]), data


def test_an_invalid_value_is_named_and_nothing_of_its_table_is_kept() -> None:
    """Large enough that threads validate it, and that its body would be a memory file."""
    rows = 1 << 20
    views, data = _long_views(rows)
    table = pa.table({"n": np.arange(rows, dtype=np.int64), "v": views})
    with DataPlane(Settings(memory_budget_bytes=1 << 30)) as plane:
        open_files = len(os.listdir("/proc/self/fd"))
        data[33 * (rows - 7) + 20] = 0xFF
        with pytest.raises(UnsupportedValueError, match=f"Column 'v', row {rows - 7}"):
            plane.publish(table)
        stats = plane.stats()
        assert (stats.bodies, stats.reserved_bytes, stats.held_bytes) == (0, 0, 0)
        assert len(os.listdir("/proc/self/fd")) == open_files
        data[33 * (rows - 7) + 20] = ord("x")
        assert fetch(plane.publish(table).resource_url, [rows - 7])["v"].to_pylist() == [
            "a text that is longex than a view"
        ]


def test_half_of_a_table_whose_views_lie_out_of_order_is_stored_without_the_other_half() -> None:
    rows = 1 << 14
    views, _ = _long_views(rows, order=slice(None, None, -2))
    with DataPlane() as plane:
        handle = plane.publish(pa.table({"v": views}))
        assert handle.total_rows == rows // 2
        assert handle.nbytes < rows // 2 * (8 + 16 + 33 + 1)


def test_above_the_memory_budget_bodies_spill_and_are_served_alike(tmp_path: Path) -> None:
    settings = Settings(memory_budget_bytes=10_000, spill_dir=str(tmp_path))
    with DataPlane(settings) as plane:
        url = plane.publish(FRAME).resource_url
        assert plane.stats().spilled_bytes > 10_000
        assert plane.stats().held_bytes == 0
        assert os.listdir(tmp_path) == []
        assert resolve(resource_url=url).drop("_row_id").equals(FRAME)
        assert fetch(url, ["5-6"])["delay"].to_pylist() == [5.0, 6.0]
        plane.revoke(url)
        assert plane.stats().spilled_bytes == 0


def test_a_folder_that_cannot_be_written_is_no_room(tmp_path: Path) -> None:
    with DataPlane(Settings(memory_budget_bytes=10_000, spill_dir=str(tmp_path / "none"))) as plane:
        with pytest.raises(NoRoomError, match="could not be spilled.*FRAMEWIRE_SPILL_DIR"):
            plane.publish(FRAME)
        assert plane.stats().spilled_bytes == 0


def test_only_allowed_peers_are_called(url: str) -> None:
    for bad in ("http://198.51.100.7:80/s2sp/data/fw1" + "a" * 32, "file:///etc/passwd", "ddi://x", ""):
        with pytest.raises(TransferDeniedError, match="FRAMEWIRE_ALLOW_PEERS") as caught:
            fetch(bad)
        assert "198.51" not in str(caught.value)


def test_a_stopped_plane_and_a_dead_one_are_errors(plane: DataPlane) -> None:
    other = DataPlane()
    with pytest.raises(LifecycleError, match="not running"):
        other.publish(FRAME)
    other.start()
    gone = other.publish(FRAME).resource_url
    other.stop()
    other.stop()
    with pytest.raises(LifecycleError, match="stopped"):
        other.publish(FRAME)
    # Nobody vouches for its origin any more; one that is configured is called, and does not answer.
    with pytest.raises(TransferDeniedError, match="call that tool again if its server has restarted"):
        fetch(gone)
    with pytest.raises(TransferFailedError):
        fetch(gone, policy=PeerPolicy(["http://127.0.0.1:*"]), deadline_seconds=10)


def test_a_taken_port_is_said_plainly(plane: DataPlane) -> None:
    port = int(plane.base_url.rsplit(":", 1)[1])
    with pytest.raises(SettingError, match=f"cannot listen on '127.0.0.1' port {port}"):
        DataPlane(port=port).start()


def test_ipv6_and_wildcards_are_advertised_reachably(caplog: pytest.LogCaptureFixture) -> None:
    with DataPlane(host="::1") as plane:
        assert plane.base_url.startswith("http://[::1]:")
        assert fetch(plane.publish(FRAME).resource_url).num_rows == 1000
    with caplog.at_level(logging.WARNING), DataPlane(host="0.0.0.0") as plane:
        assert plane.base_url.startswith("http://127.0.0.1:")
        assert "FRAMEWIRE_PUBLIC_URL" in caplog.text
    caplog.clear()
    with DataPlane(host="0.0.0.0", public_url="https://data.example.org/prefix/") as plane:
        assert plane.publish(FRAME).resource_url.startswith("https://data.example.org/prefix/s2sp/data/fw1")
        assert not caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused_by_name(plane: DataPlane) -> None:
    plane._pid += 1
    try:
        with pytest.raises(LifecycleError, match="parent of a forked process"):
            plane.publish(FRAME)
    finally:
        plane._pid -= 1


async def _inside() -> None:
    async with DataPlane() as plane:
        handle = await plane.publish_async(FRAME)
        frame = await resolve_async('[{"_row_id": 2, "why": "late"}]', handle.resource_url)
        assert frame.to_dicts() == [{"_row_id": 2, **FRAME.row(2, named=True), "why": "late"}]
        # The same without sockets: any httpx transport can take the place of framewire's own.
        transport = httpx.ASGITransport(app=plane.app)
        table = await fetch_async(handle.resource_url, [1, 0], transport=transport)
        assert table["_row_id"].to_pylist() == [1, 0]


def test_async() -> None:
    asyncio.run(_inside())


def test_a_transport_of_the_users_is_checked_alike(plane: DataPlane, url: str) -> None:
    with httpx.HTTPTransport() as transport:
        assert fetch(url, [3], transport=transport)["_row_id"].to_pylist() == [3]
    good = httpx.get(url, headers={"Accept": "application/vnd.apache.arrow.stream"})

    def answering(content: bytes, **changed: str) -> httpx.MockTransport:
        headers = {k: v for k, v in good.headers.items() if k != "content-length"} | changed
        return httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=content))

    assert fetch(url, transport=answering(good.content)).num_rows == 1000
    flipped = bytearray(good.content)
    flipped[len(flipped) // 2] ^= 1
    for content, changed, text in [
        (bytes(flipped), {}, "checksum"),
        (good.content[:-8], {}, "checksum"),
        (good.content, {"s2sp-rows": "999"}, "999"),
        (good.content, {"s2sp-rows": "1e3"}, "number of rows"),
        (good.content, {"content-type": "text/html"}, "not an Arrow stream"),
        (good.content, {"s2sp-checksum": "md5=00"}, "no checksum"),
    ]:
        with pytest.raises(BadBodyError, match=text):
            fetch(url, transport=answering(content, **changed))


def test_rows_other_than_asked_for_are_refused(url: str) -> None:
    other = httpx.post(url, json={"row_ids": [1]}, headers={"Accept": "application/vnd.apache.arrow.stream"})
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=other.headers, content=other.content))
    assert fetch(url, [1], transport=transport).num_rows == 1
    with pytest.raises(BadBodyError, match="other rows than were asked for"):
        fetch(url, [2], transport=transport)
    with pytest.raises(BadBodyError, match="other columns"):
        fetch(url, [1], ["delay"], transport=transport)


def test_where_is_refused_for_now(url: str) -> None:
    with pytest.raises(ValueError, match="where"):
        fetch(url, where="delay > 3")
    with pytest.raises(ArgumentError, match="no data"):
        resolve()


# --- one host -----------------------------------------------------------------------------------------------------------

LARGE = pl.DataFrame({"n": range(200_000), "text": [f"a text longer than a view {i}" for i in range(200_000)]})


def _trusting(plane: DataPlane) -> Settings:
    return Settings(trust_peers=(plane.base_url,))


def _is_mapped(table: pa.Table) -> bool:
    """Whether the columns' memory is a mapped memory file."""
    address = table.column(table.num_columns - 1).chunk(0).buffers()[1].address
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            start, _, stop = line.split(" ", 1)[0].partition("-")
            if int(start, 16) <= address < int(stop, 16):
                return "memfd:framewire" in line
    return False


@pytest.mark.skipif(not memfd.is_available(), reason="needs Linux's memfd")
def test_on_one_host_a_trusted_peers_body_is_mapped(plane: DataPlane) -> None:
    handle = plane.publish(LARGE)
    mapped = fetch(handle.resource_url, settings=_trusting(plane), types="views")
    assert _is_mapped(mapped)
    text = fetch(handle.resource_url, settings=_trusting(plane))["text"]
    assert text.type == pa.large_string()
    assert text.to_pylist() == mapped["text"].to_pylist()
    assert resolve(resource_url=handle.resource_url, settings=_trusting(plane)).drop("_row_id").equals(LARGE)
    projected = fetch(handle.resource_url, columns=["text"], settings=_trusting(plane), types="views")
    assert _is_mapped(projected)
    assert projected.column_names == ["_row_id", "text"]
    with pytest.raises(UnknownColumnError):
        fetch(handle.resource_url, columns=["txt"], settings=_trusting(plane))
    plane.revoke(handle)
    # The mapping outlives the handle: its bytes cannot change or go away under the frame.
    assert mapped["n"].to_pylist()[-1] == 199_999


@pytest.mark.skipif(not memfd.is_available(), reason="needs Linux's memfd")
def test_without_trust_or_with_any_doubt_it_comes_over_http(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    url = plane.publish(LARGE).resource_url
    for table in (
        fetch(url, policy=PeerPolicy([plane.base_url])),
        fetch(url, settings=Settings(trust_peers=(plane.base_url,), same_host="off")),
    ):
        assert not _is_mapped(table)
        assert table.num_rows == 200_000
    # Another user or another container has another identity.
    monkeypatch.setattr(memfd, "host_identity", lambda: "1:other:2")
    monkeypatch.setattr(memfd, "open_sealed", lambda location: None)
    table = fetch(url, settings=_trusting(plane))
    assert not _is_mapped(table)
    assert table.num_rows == 200_000


def test_small_bodies_and_heaps_are_not_mapped(plane: DataPlane, url: str) -> None:
    assert not _is_mapped(fetch(url, settings=_trusting(plane)))
    with DataPlane(Settings(same_host="off")) as other:
        assert not _is_mapped(fetch(other.publish(LARGE).resource_url, settings=_trusting(other)))


# --- the registry -------------------------------------------------------------------------------------------------------


def test_a_plane_of_this_user_needs_no_configuration(plane: DataPlane, url: str) -> None:
    assert fetch(url.replace("127.0.0.1", "localhost"), [0]).num_rows == 1
    with pytest.raises(TransferDeniedError):
        fetch(url, policy=PeerPolicy(registered=None))


def test_who_does_not_know_the_nonce_is_sent_no_token() -> None:
    """Another process took the port of a plane whose entry is still there."""
    seen: list[str] = []

    def impostor(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path)
        return httpx.Response(200, json={"status": "ok", "proof": "0" * 64})

    origin = "http://127.0.0.1:9"
    entry = registry.Registration(origin, os.getpid(), 1, "00" * 32)
    policy = PeerPolicy(registered=lambda asked: entry if asked == origin else None)
    for answer in (impostor, lambda request: httpx.Response(404), lambda request: httpx.Response(200, text="[]")):
        with pytest.raises(TransferDeniedError, match="no connection was made|may fetch"):
            fetch(f"{origin}/s2sp/data/fw1{'a' * 32}", policy=policy, transport=httpx.MockTransport(answer))
    assert seen == ["/s2sp/health"]


def test_only_challenges_are_answered(plane: DataPlane) -> None:
    health = f"{plane.base_url}/s2sp/health"
    challenge = registry.new_challenge()
    entry = registry.lookup(plane.base_url)
    assert entry is not None
    assert entry.accepts(challenge, httpx.get(health, params={"challenge": challenge}).json()["proof"])
    assert "proof" not in httpx.get(health).json()
    refused = httpx.get(health, params={"challenge": "sign this"})
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_selection")


def _hold_connection(plane: DataPlane) -> socket.socket:
    parts = urlsplit(plane.base_url)
    sock = socket.create_connection((parts.hostname, parts.port))
    sock.sendall(b"GET /s2sp/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert sock.recv(12) == b"HTTP/1.1 200"
    return sock


@pytest.mark.parametrize("most", [1, 2])
def test_a_plane_serves_as_many_connections_as_it_says(most: int) -> None:
    with DataPlane(Settings(max_connections=most)) as plane, ExitStack() as stack:
        url = plane.publish([{"a": 1}]).resource_url
        for _ in range(most - 1):
            stack.enter_context(_hold_connection(plane))
        transport = stack.enter_context(closing(DirectTransport()))
        assert fetch(url, transport=transport).num_rows == 1


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_full_plane_is_not_taken_for_a_stranger(is_listed: bool) -> None:
    """A registered plane answers the challenge with 503 then: whoever asks is told to try again, and not to list it."""
    with DataPlane(Settings(max_connections=1)) as plane, _hold_connection(plane):
        url = plane.publish([{"a": 1}]).resource_url
        peers = (plane.base_url,) if is_listed else ()
        with closing(DirectTransport()) as transport, pytest.raises(OverloadedError):
            fetch(url, settings=Settings(allow_peers=peers), transport=transport)


def test_a_dictionary_that_is_not_written_out_is_not_counted_as_if_it_were() -> None:
    """Only views are cast by fetch: a category of 10 KB in a thousand rows stays one value."""
    codes = pa.array([0] * 1000, pa.int32())
    data = pa.table({"c": pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 10_000]))})
    with DataPlane() as plane:
        url = plane.publish(data).resource_url
        settings = Settings(max_body_bytes=1 << 20, trust_peers=(plane.base_url,))
        assert fetch(url, settings=settings)["c"].type == data["c"].type
