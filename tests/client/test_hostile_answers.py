"""What a server may answer that is not what was asked for: each is an error of its own, and never a frame."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pyarrow as pa
import pytest

from framewire import (
    BadBodyError,
    InvalidTokenError,
    OverloadedError,
    PeerPolicy,
    S2SPError,
    Settings,
    TooLargeError,
    TransferFailedError,
    UnsupportedVersionError,
    fetch,
    wire,
)
from framewire.arrow import write
from tests.client.scripted import Server, serving

ORIGIN = "http://127.0.0.1:9"
URL = f"{ORIGIN}/s2sp/data/fw1{'a' * 32}"
TABLE = pa.table({"_row_id": pa.array([0, 1, 2], pa.int64()), "a": ["x", "y", None]})


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _headers(body: bytes, rows: int = 3) -> dict[str, str]:
    return {
        "Content-Type": wire.ARROW_STREAM,
        "Content-Length": str(len(body)),
        wire.H_VERSION: wire.WIRE_VERSION,
        wire.H_ROWS: str(rows),
        wire.H_CHECKSUM: write.checksum([body]),
    }


def _fetch(status: int, headers: dict[str, str], body: bytes, **arguments: Any) -> pa.Table:
    """Fetch from a server that gives this answer to any request."""
    transport = httpx.MockTransport(lambda request: httpx.Response(status, headers=headers, content=body))
    return fetch(URL, policy=PeerPolicy([ORIGIN]), transport=transport, **arguments)


def test_the_answer_that_the_others_are_made_of_is_taken() -> None:
    body = _stream(TABLE)
    assert _fetch(200, _headers(body), body).equals(TABLE)
    assert _fetch(200, _headers(body), body, row_ids=["0-2"], columns=["a"]).equals(TABLE)


@pytest.mark.parametrize(
    ("header", "value", "error", "named"),
    [
        (wire.H_VERSION, "2", UnsupportedVersionError, "wire version 1"),
        (wire.H_VERSION, None, UnsupportedVersionError, "wire version 1"),
        ("Content-Type", "text/html", BadBodyError, "not an Arrow stream"),
        ("Content-Encoding", "x-unknown", BadBodyError, "content coding"),
        (wire.H_ROWS, None, BadBodyError, "number of rows"),
        (wire.H_ROWS, "-3", BadBodyError, "number of rows"),
        (wire.H_ROWS, "\u0663", BadBodyError, "number of rows"),
        (wire.H_ROWS, "9" * 19, BadBodyError, "number of rows"),
        (wire.H_ROWS, "9" * 18, TooLargeError, "FRAMEWIRE_MAX_ROWS"),
        (wire.H_ROWS, "4", BadBodyError, "4"),
        (wire.H_CHECKSUM, None, BadBodyError, "checksum"),
        (wire.H_CHECKSUM, "md5=0", BadBodyError, "checksum"),
        (wire.H_CHECKSUM, write.checksum([b"other"]), BadBodyError, "altered"),
    ],
)
def test_a_wrong_head_is_an_error(header: str, value: str | None, error: type[S2SPError], named: str) -> None:
    body = _stream(TABLE)
    headers: dict[str, Any] = {name: text for name, text in _headers(body).items() if name != header}
    if value is not None:
        headers[header] = value.encode("utf-8")
    with pytest.raises(error, match=named):
        _fetch(200, headers, body)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"row_ids": [0, 1]}, "3 rows where 2 were asked for"),
        ({"row_ids": [2, 1, 0]}, "other rows"),
        ({"columns": ["b"]}, "other columns"),
        ({"columns": ["a", "b"]}, "other columns"),
    ],
)
def test_an_answer_to_another_question_is_an_error(arguments: dict[str, Any], named: str) -> None:
    body = _stream(TABLE)
    with pytest.raises(BadBodyError, match=named):
        _fetch(200, _headers(body), body, **arguments)


WRONG_TABLES = {
    "null ids": pa.table({"_row_id": pa.array([0, None, 2], pa.int64()), "a": [1, 2, 3]}),
    "ids of another type": pa.table({"_row_id": pa.array([0, 1, 2], pa.int32())}),
    "ids as the second column": TABLE.select(["a", "_row_id"]),
    "no ids": TABLE.select(["a"]),
    "ids that do not count up": pa.table({"_row_id": pa.array([0, 2, 1], pa.int64())}),
    "a name twice": pa.Table.from_arrays([TABLE[0], TABLE[1], TABLE[1]], names=["_row_id", "a", "a"]),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_a_table_of_a_wrong_form_is_an_error(name: str) -> None:
    body = _stream(WRONG_TABLES[name])
    with pytest.raises(BadBodyError):
        _fetch(200, _headers(body), body)


@pytest.mark.parametrize("status", [204, 301, 302, 304])
def test_a_redirect_is_not_followed(status: int) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(status, headers={"Location": "http://127.0.0.1:10/elsewhere"})

    with pytest.raises(TransferFailedError, match=str(status)):
        fetch(URL, policy=PeerPolicy([ORIGIN]), transport=httpx.MockTransport(answer))
    assert set(asked) == {URL}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, b"", InvalidTokenError),
        (410, b"{}", InvalidTokenError),
        (503, b"busy", OverloadedError),
        (500, b"[" * 50_000, TransferFailedError),
        (418, b'{"code": 5}', TransferFailedError),
        (400, b"\xff", TransferFailedError),
        (400, b"x" * (1 << 20), TransferFailedError),
    ],
)
def test_an_error_of_any_form_is_an_error(status: int, body: bytes, error: type[S2SPError]) -> None:
    with pytest.raises(error):
        _fetch(status, {"Content-Length": str(len(body))}, body)


def test_the_text_of_an_error_is_cut() -> None:
    told = {"code": "bad_selection", "error": "e" * 50_000, "hint": "h" * 50_000}
    body = json.dumps(told).encode()
    with pytest.raises(S2SPError) as caught:
        _fetch(422, {"Content-Length": str(len(body))}, body, settings=Settings())
    assert len(str(caught.value)) < 5000


def test_a_selection_above_the_requests_limit_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_REQUEST_BYTES", 1000)

    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError("sent")

    with pytest.raises(TooLargeError, match="above 1000"):
        fetch(URL, list(range(0, 1000, 2)), policy=PeerPolicy([ORIGIN]), transport=httpx.MockTransport(answer))


@pytest.mark.parametrize("total", [10**6, 10**15, (1 << 63) - 1, -5, 10**30])
@pytest.mark.parametrize("row_ids", [["5-"], ["0-3000000"], ["0-"]])
def test_a_refusal_that_offers_a_row_at_a_time_is_not_taken_apart_first(total: int, row_ids: list[str]) -> None:
    """Both numbers are the server's: memory stays flat, and what is above the limit is refused before any part is asked for."""
    asked = []
    answer = {"code": "too_large", "error": "x", "hint": "", "rows_that_fit": 1, "total_rows": total}

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(413, json=answer)

    settings = Settings(max_rows=2_000_000)
    with pytest.raises(S2SPError):
        fetch(URL, row_ids, policy=PeerPolicy([ORIGIN]), transport=httpx.MockTransport(respond), settings=settings)
    assert len(asked) <= 2


def test_the_limit_for_bytes_holds_over_all_parts() -> None:
    """A server that cuts a selection into parts sends no more in all than it may at once."""
    wide = pa.table({"_row_id": pa.array([0], pa.int64()), "a": ["x" * 1000]})

    def respond(request: httpx.Request) -> httpx.Response:
        rows = json.loads(request.content)["row_ids"]
        if rows == ["0-99"]:
            return httpx.Response(413, json={"code": "too_large", "error": "x", "hint": "", "rows_that_fit": 1})
        start = int(str(rows[0]).partition("-")[0])
        body = _stream(wide.set_column(0, "_row_id", pa.array([start], pa.int64())))
        return httpx.Response(200, headers=_headers(body, rows=1), content=body)

    arguments: dict[str, Any] = {"policy": PeerPolicy([ORIGIN]), "transport": httpx.MockTransport(respond)}
    assert fetch(URL, ["0-99"], **arguments).num_rows == 100
    with pytest.raises(TooLargeError, match="FRAMEWIRE_MAX_BODY_BYTES"):
        fetch(URL, ["0-99"], settings=Settings(max_body_bytes=20_000), **arguments)


@pytest.mark.parametrize("row_ids", ["[" * 100_000, b"12", "[" * 50])
def test_ids_that_are_none_are_refused_by_name(row_ids: Any) -> None:
    body = _stream(TABLE)
    with pytest.raises(S2SPError, match="row_ids"):
        _fetch(200, _headers(body), body, row_ids=row_ids)


def test_the_body_of_an_error_is_never_resumed_as_a_table() -> None:
    """An error that is cut off, and then the rest of something: the first answer was no table, so nothing of it counts."""
    body = _stream(TABLE)
    tail = body[50:]
    error = b'HTTP/1.1 503 Busy\r\nContent-Type: text/html\r\nETag: "e"\r\nContent-Length: %d\r\n' % len(body)
    names = "".join(f"{name}: {value}\r\n" for name, value in _headers(tail).items() if name != "Content-Length")
    rest = f"HTTP/1.1 206 P\r\n{names}Content-Range: bytes 50-{len(body) - 1}/{len(body)}\r\nContent-Length: {len(tail)}\r\n\r\n"

    def script(server: Server, sock: socket.socket, number: int) -> None:
        server.read_request(sock)
        if number == 0:
            checksum = write.checksum([tail])
            sock.sendall(error + f"{wire.H_ROWS}: 3\r\n{wire.H_CHECKSUM}: {checksum}\r\n\r\n".encode() + body[:50])
        else:
            sock.sendall(rest.encode() + tail)

    with serving(script) as server:
        origin = f"http://127.0.0.1:{server.port}"
        with pytest.raises(S2SPError):
            fetch(f"{origin}/s2sp/data/fw1{'a' * 32}", policy=PeerPolicy([origin]), deadline_seconds=20)
