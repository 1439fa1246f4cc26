from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framewire.client._call import Headers
from framewire.client._head import plain_head

ORDINARY = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.apache.arrow.stream\r\nS2SP-Rows: 100\r\nvary: Accept, S2SP-Types\r\n"
    b"Content-Length: 7000\r\nx-empty:\r\nx-blank: \t \r\n\r\n"
)


def _by_h11(raw: bytes) -> tuple[int, dict[str, str]] | None:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(raw)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return None
    return (event.status_code, dict(Headers.of(event.headers))) if isinstance(event, h11.Response) else None


def test_an_ordinary_head() -> None:
    head = plain_head(ORDINARY)
    assert head is not None
    assert (head.status, head.is_http_1_1) == (200, True)
    assert head.headers["s2sp-rows"] == "100"
    assert head.headers.get("VARY") == "Accept, S2SP-Types"
    assert head.headers["x-empty"] == head.headers["x-blank"] == ""
    assert _by_h11(ORDINARY) == (200, dict(head.headers))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"HTTP/1.1 200", b"HTTP/1.0 200"),
        (b"HTTP/1.1 200", b"HTTP/1.1 100"),
        (b"HTTP/1.1 200", b"HTTP/1.1  200"),
        (b"x-empty:", b"content-length: 7000"),
        (b"x-empty:", b"Content-Length: 1"),
        (b"x-empty:", b"transfer-encoding: chunked"),
        (b"x-empty:", b"x empty: 1"),
        (b"x-empty:", b"x-empty : 1"),
        (b"x-empty:", b" folded"),
        (b"x-empty:", b"no colon"),
        (b"x-empty:", b"x: nul\0"),
        (b"x-empty:", b"x: caf\xe9"),
        (b"x-empty:\r\n", b"x-empty:\n"),
        (b"7000", b"+7000"),
        (b"7000", b"7000, 7000"),
        (b"7000", b"0x10"),
        (b"7000", b""),
        (b"7000", b"9" * 19),
        (b"Content-Length: 7000\r\n", b""),
    ],
)
def test_anything_else_is_left_to_h11(old: bytes, new: bytes) -> None:
    assert old in ORDINARY
    assert plain_head(ORDINARY.replace(old, new, 1)) is None


_PIECES = st.sampled_from(
    [b"\r\n", b"\n", b"\r", b":", b" ", b"\t", b"a", b"7", b"\0", b"\xe9", b"content-length", b"HTTP/1.1"]
)


@given(st.lists(st.tuples(st.integers(0, len(ORDINARY)), st.integers(0, 6), _PIECES), max_size=4))
@example([])
def test_what_is_taken_reads_as_h11_reads_it(edits: list[tuple[int, int, bytes]]) -> None:
    raw = ORDINARY
    for place, cut, piece in edits:
        raw = raw[:place] + piece + raw[place + cut :]
    # A head ends at its first empty line, as the exchange cuts it off.
    raw = raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    head = plain_head(raw)
    if head is not None:
        assert _by_h11(raw) == (head.status, dict(head.headers))
