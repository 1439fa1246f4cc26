from __future__ import annotations

import pytest

from framewire import wire
from framewire.errors import BadRangeError
from framewire.serve import _negotiate
from framewire.serve._negotiate import Accepted, negotiate, parse_range

ARROW = wire.ARROW_STREAM


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        ("", Accepted(arrow=False, views=False)),
        ("*/*", Accepted(arrow=False, views=False)),
        (";", Accepted(arrow=False, views=False)),
        (f" ; ,;;, {ARROW};;", Accepted(arrow=True, views=False)),
        (ARROW, Accepted(arrow=True, views=False)),
        (f"text/html;q=0.1, {ARROW.upper()}", Accepted(arrow=True, views=False)),
        (f"{ARROW};q=0", Accepted(arrow=False, views=False)),
        (f"{ARROW};q=0.001", Accepted(arrow=True, views=False)),
        (f"{ARROW};q=much", Accepted(arrow=True, views=False)),
        (f'{ARROW}; codecs="brotli, lz4, zstd"', Accepted(arrow=True, views=False, codec="lz4")),
        (f'{ARROW}; codecs="zstd', Accepted(arrow=True, views=False, codec="zstd")),
    ],
)
def test_what_accept_means(accept: str, accepted: Accepted) -> None:
    for _ in range(2):  # read, then remembered
        assert negotiate({"accept": accept}, near=False) == accepted
    near = negotiate({"accept": accept, "s2sp-types": "x, Views", "s2sp-map": "a host"}, near=True)
    assert near == Accepted(accepted.arrow, views=True, host="a host", codec=None)


def test_only_short_headers_are_remembered_and_only_so_many() -> None:
    _negotiate._remembered.cache_clear()
    long = f"{ARROW}, " + "x/y, " * 200
    for headers in ({"accept": long}, {"accept": ARROW, "s2sp-types": long}, {"accept": ARROW, "s2sp-map": long}):
        assert negotiate(headers).arrow
    assert _negotiate._remembered.cache_info().currsize == 0
    for i in range(100):
        assert negotiate({"accept": ARROW, "s2sp-map": str(i)}).host == str(i)
    assert _negotiate._remembered.cache_info().currsize == 64


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("bytes=0-0", range(1)),
        ("bytes=2-", range(2, 10)),
        ("bytes=2-99", range(2, 10)),
        ("bytes=-3", range(7, 10)),
        ("bytes=-99", range(10)),
        (" Bytes = 1-2 ", range(1, 3)),
        ("bytes=5-4", None),
        ("bytes=99-4", None),
        ("bytes=-", None),
        ("bytes=", None),
        ("bytes", None),
        ("", None),
        ("rows=0-1", None),
        ("bytes=0-1,4-5", None),
        ("bytes=0-1-2", None),
        ("bytes=+1-2", None),
        ("bytes=a-b", None),
        ("bytes=" + "9" * 5000 + "-", None),
        ("bytes=\u00b2-", None),
    ],
)
def test_ranges(text: str, positions: range | None) -> None:
    assert parse_range(text, 10) == positions


@pytest.mark.parametrize("text", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_outside_the_body(text: str) -> None:
    with pytest.raises(BadRangeError):
        parse_range(text, 10)
    with pytest.raises(BadRangeError):
        parse_range("bytes=0-", 0)
