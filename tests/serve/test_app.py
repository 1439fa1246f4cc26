"""The wire as a client sees it, without sockets."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.ipc
import pytest

from framewire.arrow import read, write
from framewire.arrow.read import END_OF_STREAM
from framewire.errors import BadBodyError
from framewire.plane import DataPlane
from framewire.settings import Settings

pytestmark = pytest.mark.anyio

ARROW = {"Accept": "application/vnd.apache.arrow.stream", "S2SP-Types": "views"}
TABLE = pa.table(
    {
        "n": pa.array(range(100), pa.int32()),
        "s": pa.array([f"a text that is longer than a view, number {i}" for i in range(100)], pa.string_view()),
        "big": pa.array([2**60 + i for i in range(100)], pa.int64()),
    }
)


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[DataPlane]:
    # A runtime folder of its own: the URL is made up, and another process that runs these tests claims the same one.
    runtime = tmp_path / "runtime"
    plane = DataPlane(Settings(max_selection_bytes=4096, runtime_dir=str(runtime))).start(
        listen=False, base_url="http://127.0.0.1:1"
    )
    try:
        yield plane
    finally:
        plane.stop()


@pytest.fixture
def url(plane: DataPlane) -> str:
    return plane.publish(TABLE, tool="numbers").resource_url


@pytest.fixture
async def client(plane: DataPlane) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=plane.app)) as client:
        yield client


def _read(response: httpx.Response) -> pa.Table:
    """Everything that wire version 1 promises of an Arrow answer."""
    assert response.status_code in (200, 206), response.text
    assert response.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert response.headers["s2sp-version"] == "1"
    assert int(response.headers["content-length"]) == len(response.content)
    assert response.headers["s2sp-checksum"] == write.checksum([response.content])
    assert response.headers["vary"] == "Accept, S2SP-Types"
    table = pa.ipc.open_stream(response.content).read_all()
    table.validate(full=True)
    assert table.num_rows == int(response.headers["s2sp-rows"])
    assert response.content.endswith(END_OF_STREAM)
    assert table.column_names[0] == "_row_id"
    return table


async def test_whole_body(client: httpx.AsyncClient, url: str) -> None:
    for response in (await client.get(url, headers=ARROW), await client.post(url, json={}, headers=ARROW)):
        table = _read(response)
        assert table.drop_columns("_row_id").equals(TABLE)
        assert table["_row_id"].to_pylist() == list(range(100))


async def test_a_peer_that_does_not_read_views_gets_large_strings(client: httpx.AsyncClient, url: str) -> None:
    plain = await client.get(url, headers={"Accept": ARROW["Accept"]})
    views = await client.get(url, headers=ARROW)
    assert _read(plain).schema.field("s").type == pa.large_string()
    assert _read(views).schema.field("s").type == pa.string_view()
    assert _read(plain)["s"].to_pylist() == TABLE["s"].to_pylist()
    assert plain.headers["etag"] != views.headers["etag"]
    part = await client.post(url, json={"row_ids": [5, 3]}, headers={"Accept": ARROW["Accept"]})
    assert _read(part).schema.field("s").type == pa.large_string()


SELECTIONS: list[tuple[Any, list[int]]] = [
    ([], []),
    ([0], [0]),
    ([7, 3, 3, 99], [7, 3, 3, 99]),
    (["5-8", "98-"], [5, 6, 7, 8, 98, 99]),
    (["0-99"], list(range(100))),
    ("10-19", list(range(10, 20))),
]


@pytest.mark.parametrize(("row_ids", "ids"), SELECTIONS)
@pytest.mark.parametrize("columns", [None, ["s"], ["big", "n"], ["_row_id"], []])
async def test_selections(client: httpx.AsyncClient, url: str, row_ids: Any, ids: list[int], columns: Any) -> None:
    request = {"row_ids": row_ids} | ({} if columns is None else {"columns": columns})
    names = ["n", "s", "big"] if columns is None else [c for c in columns if c != "_row_id"]
    rows = TABLE.to_pylist()
    posted = await client.post(url, json=request, headers=ARROW)
    table = _read(posted)
    assert table["_row_id"].to_pylist() == ids
    assert table.drop_columns("_row_id").to_pylist() == [{name: rows[i][name] for name in names} for i in ids]
    assert table.column_names == ["_row_id", *names]
    if columns != []:
        text = row_ids if isinstance(row_ids, str) else ",".join(map(str, row_ids))
        got = await client.get(
            url, params={"row_ids": text} | ({} if columns is None else {"columns": columns}), headers=ARROW
        )
        assert got.content == posted.content


async def test_no_byte_of_an_unselected_row_is_sent(client: httpx.AsyncClient, url: str) -> None:
    for row_ids in ([7, 50], ["7-8"]):
        response = await client.post(url, json={"row_ids": row_ids}, headers=ARROW)
        assert response.content.count(b"longer than a view, number ") == 2


async def test_the_references_json(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, json={"row_ids": [2, 1], "columns": ["n", "big"]}, headers={"Accept": "*/*"})
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "body": [
            {"_row_id": 2, "n": 2, "big": str(2**60 + 2)},
            {"_row_id": 1, "n": 1, "big": str(2**60 + 1)},
        ],
        "total_rows": 2,
    }
    assert response.headers["s2sp-checksum"] == write.checksum([response.content])
    assert int(response.headers["content-length"]) == len(response.content)


async def test_ranges_resume_a_whole_body(client: httpx.AsyncClient, url: str) -> None:
    whole = await client.get(url, headers=ARROW)
    etag = whole.headers["etag"]
    cut = 1000
    rest = await client.get(url, headers=ARROW | {"Range": f"bytes={cut}-", "If-Range": etag})
    assert rest.status_code == 206
    assert rest.headers["content-range"] == f"bytes {cut}-{len(whole.content) - 1}/{len(whole.content)}"
    assert rest.content == whole.content[cut:]
    assert rest.headers["s2sp-checksum"] == write.checksum([rest.content])
    last = await client.get(url, headers=ARROW | {"Range": "bytes=-8"})
    assert last.content == whole.content[-8:]
    other = await client.get(url, headers=ARROW | {"Range": "bytes=5-", "If-Range": '"another"'})
    assert other.status_code == 200
    assert other.content == whole.content
    beyond = await client.get(url, headers=ARROW | {"Range": f"bytes={len(whole.content)}-"})
    assert beyond.status_code == 416
    assert beyond.json()["code"] == "bad_range"
    several = await client.get(url, headers=ARROW | {"Range": "bytes=0-1,4-5"})
    assert several.status_code == 200


async def test_head_has_the_headers_of_the_whole_body(client: httpx.AsyncClient, url: str) -> None:
    whole = await client.get(url, headers=ARROW)
    head = await client.head(url, headers=ARROW)
    assert head.status_code == 200
    assert head.content == b""
    for name in ("content-length", "s2sp-rows", "s2sp-checksum", "etag", "accept-ranges"):
        assert head.headers[name] == whole.headers[name]


async def test_delete_revokes(client: httpx.AsyncClient, url: str) -> None:
    assert (await client.delete(url)).json() == {"revoked": True}
    for response in (await client.get(url), await client.delete(url)):
        assert response.status_code == 410
        assert response.json()["code"] == "revoked"
        assert "'numbers'" in response.json()["hint"]


async def test_health(client: httpx.AsyncClient) -> None:
    response = await client.get("http://127.0.0.1/s2sp/health")
    assert response.json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("request_json", "status", "code", "text"),
    [
        ({"row_ids": [100]}, 422, "row_out_of_range", "Row 100 does not exist"),
        ({"row_ids": [-1]}, 422, "bad_selection", "-1 is not a row id"),
        ({"row_ids": [True]}, 422, "bad_selection", "true is not"),
        ({"columns": ["nn"]}, 422, "unknown_column", "no column 'nn'. Did you mean 'n'?"),
        ({"column": ["n"]}, 422, "unknown_key", "'column'"),
        ({"where": "n > 1"}, 422, "bad_selection", "where"),
        ([1, 2], 422, "bad_selection", "not a JSON object"),
    ],
)
async def test_bad_requests_are_named(
    client: httpx.AsyncClient, url: str, request_json: Any, status: int, code: str, text: str
) -> None:
    for headers in (ARROW, {}):
        response = await client.post(url, json=request_json, headers=headers)
        assert (response.status_code, response.json()["code"]) == (status, code)
        assert text in response.json()["error"]
        assert response.json()["hint"]
        assert response.headers["s2sp-version"] == "1"


async def test_malformed_json_is_refused_not_taken_for_everything(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, content=b'{"row_ids": [1', headers=ARROW)
    assert (response.status_code, response.json()["code"]) == (422, "bad_selection")


async def test_unknown_handles(client: httpx.AsyncClient, plane: DataPlane) -> None:
    response = await client.post("http://127.0.0.1/s2sp/data/fw1" + "a" * 32, json={})
    assert (response.status_code, response.json()["code"]) == (404, "unknown_handle")
    assert "a" * 32 not in response.text


async def test_large_requests_are_refused(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, content=b" " * ((16 << 20) + 1))
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


async def test_a_scattered_selection_above_the_limit_says_what_fits(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, json={"row_ids": list(range(0, 100, 2)) * 4}, headers=ARROW)
    error = response.json()
    assert (response.status_code, error["code"]) == (413, "too_large")
    assert 0 < error["rows_that_fit"] < 200
    again = await client.post(url, json={"row_ids": [0, 2] * (error["rows_that_fit"] // 2)}, headers=ARROW)
    _read(again)


async def test_foreign_hosts_and_origins_are_refused(client: httpx.AsyncClient, url: str) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": ""}):
        response = await client.get(url, headers=headers)
        assert (response.status_code, response.json()["code"]) == (421, "bad_host")
        assert "FRAMEWIRE_ALLOWED_HOSTS" in response.json()["hint"]
    assert (await client.get(url, headers={"Origin": "http://localhost:9"})).status_code == 200


async def test_other_methods(client: httpx.AsyncClient, url: str) -> None:
    response = await client.put(url)
    assert response.status_code == 405
    assert json.loads(response.text)["hint"]


@pytest.mark.parametrize(
    "path", ["/", "/s2sp", "/s2sp/data", "/s2sp/data/", "/s2sp/data/a/b", "/s2sp/health/", "/x/s2sp/health"]
)
async def test_other_paths_are_a_plain_404(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(f"http://127.0.0.1{path}")
    assert (response.status_code, response.json()["code"]) == (404, "bad_request")


async def test_the_app_may_be_mounted_under_a_path(plane: DataPlane, url: str) -> None:
    token = url.rpartition("/")[2]
    for root, served in (("/x", "/x"), ("/x", ""), ("/s2sp", "")):
        transport = httpx.ASGITransport(app=plane.app, root_path=root)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for path in ("/s2sp/health", f"/s2sp/data/{token}"):
                # Under "/s2sp" the plane's own paths are those of another app.
                expected = 404 if root == "/s2sp" else 200
                assert (await client.get(served + path)).status_code == expected
            assert (await client.get(f"/y{path}")).status_code == 404


async def test_two_host_headers_are_refused(client: httpx.AsyncClient, url: str) -> None:
    response = await client.get(url, headers=[("Host", "127.0.0.1"), ("Host", "127.0.0.1")])
    assert (response.status_code, response.json()["code"]) == (421, "bad_host")


async def test_null_is_no_selection(client: httpx.AsyncClient, url: str) -> None:
    response = await client.post(url, content=b"null", headers=ARROW)
    assert (response.status_code, response.json()["code"]) == (422, "bad_selection")


async def test_lifespans_complete_and_websockets_are_closed(plane: DataPlane) -> None:
    async def run(kind: str, *received: str) -> list[str]:
        waiting, sent = list(received), []

        async def receive() -> dict[str, str]:
            return {"type": waiting.pop(0)}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await plane.app({"type": kind}, receive, send)
        assert waiting == []
        return sent

    assert await run("lifespan", "lifespan.startup", "lifespan.shutdown") == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert await run("websocket", "websocket.connect") == ["websocket.close"]


async def test_a_key_that_appears_twice_in_the_query_is_named(client: httpx.AsyncClient, url: str) -> None:
    response = await client.get(f"{url}?row_ids=1&row_ids=2")
    assert response.status_code == 422
    assert "'row_ids' appears twice" in response.json()["error"]


async def test_nothing_is_held_after_the_answers(client: httpx.AsyncClient, plane: DataPlane, url: str) -> None:
    await client.post(url, json={"row_ids": [1, 5]}, headers=ARROW)
    await client.post(url, json={"row_ids": [1, 500]}, headers=ARROW)
    await client.get(url)
    stats = plane.stats()
    assert (stats.readers, stats.reserved_bytes) == (0, 0)


# --- compression --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def far(plane: DataPlane) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=plane.app, client=("192.0.2.9", 5))
    async with httpx.AsyncClient(transport=transport) as client:
        yield client


def _buffers_are_compressed(content: bytes) -> bool:
    try:
        read.decode(pa.py_buffer(content), rows=None, max_rows=10**7, max_bytes=10**9)
    except BadBodyError as exc:
        return "compress" in exc.message
    return False


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
async def test_codecs_are_used_for_far_clients_that_read_them(
    client: httpx.AsyncClient, far: httpx.AsyncClient, plane: DataPlane, codec: str
) -> None:
    table = pa.table({"n": pa.array(range(100_000), pa.int64()), "s": ["the same text again"] * 100_000})
    url = plane.publish(table).resource_url
    asking = ARROW | {"Accept": f'text/html;q=0.1, {ARROW["Accept"]}; codecs="{codec}"'}
    near, sent = await client.get(url, headers=asking), await far.get(url, headers=asking)
    assert len(sent.content) < len(near.content) // 2
    assert near.headers["etag"] != sent.headers["etag"]
    assert _buffers_are_compressed(sent.content)
    assert _read(sent).equals(_read(near))
    assert (await far.get(url, headers=asking)).content == sent.content
    assert (await far.get(url, headers=ARROW)).content == near.content
    projected = await far.post(url, json={"columns": ["s"]}, headers=asking)
    assert _buffers_are_compressed(projected.content)
    assert _read(projected).column_names == ["_row_id", "s"]


async def test_what_does_not_shrink_is_sent_as_it_is(far: httpx.AsyncClient, plane: DataPlane) -> None:
    noise = {
        f"x{i}": pa.Array.from_buffers(pa.float64(), 20_000, [None, pa.py_buffer(os.urandom(160_000))])
        for i in range(8)
    }
    url = plane.publish(pa.table(noise)).resource_url
    asking = ARROW | {"Accept": f'{ARROW["Accept"]}; codecs="zstd, lz4"'}
    for answer in (
        await far.get(url, headers=asking),
        await far.post(url, json={"columns": list(noise)}, headers=asking),
    ):
        assert not _buffers_are_compressed(answer.content)
