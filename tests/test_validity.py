from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from framewire._validity import is_ascii, validate

KINDS = [pa.string(), pa.large_string(), pa.string_view()]
GOOD = ["", "short", "a text that is longer than a view", None, "twelve bytes"]


def _bytes(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    """Text of any bytes, which Arrow's own constructors would refuse."""
    twin = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}[kind]
    array = pa.array(values, twin)
    return pa.Array.from_buffers(kind, len(array), array.buffers(), array.null_count, array.offset)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("extra", [[], ["é"], ["ein längerer Text mit Umlaut"], ["東京" * 9]])
def test_what_arrow_accepts_is_accepted(kind: pa.DataType, extra: list[str]) -> None:
    array = pa.array(GOOD * 3 + extra, kind)
    for part in (array, array.slice(2), array.slice(1, 4), array.slice(0, 0)):
        validate(part)
        validate(pa.table({"x": part}))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "bad", [b"\xff", b"short\xc3", b"a text that is longer than a vi\xff", b"\xe9 and a tail that is long"]
)
@pytest.mark.parametrize("place", [0, 3])
def test_bytes_that_are_no_utf8_are_refused(kind: pa.DataType, bad: bytes, place: int) -> None:
    values: list[bytes | None] = [b"fine", None, b"also fine, and longer than a view"]
    values.insert(place, bad)
    array = _bytes(values, kind)
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        array.validate(full=True)
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        validate(array)


def test_malformed_offsets_and_views_are_refused() -> None:
    good = pa.array(["a text that is longer than a view"] * 3, pa.string_view())
    views = np.frombuffer(good.buffers()[1], np.int32).copy()
    for word, value in ((2, 7), (3, 10**6), (0, -5), (1, 0x41414141)):
        broken = views.copy()
        broken[word] = value
        array = pa.Array.from_buffers(pa.string_view(), 3, [None, pa.py_buffer(broken), good.buffers()[2]])
        with pytest.raises((pa.ArrowInvalid, pa.ArrowIndexError)):
            validate(array)
    offsets = pa.py_buffer(np.array([0, 5, 3, 9], np.int32))
    with pytest.raises(pa.ArrowInvalid):
        validate(pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"x" * 9)]))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 300_000])
def test_is_ascii(length: int) -> None:
    assert is_ascii(b"a" * length)
    for place in {0, length // 2, length - 1} if length else ():
        data = bytearray(b"a" * length)
        data[place] = 0x80
        assert not is_ascii(bytes(data))
