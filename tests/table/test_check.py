"""Malformed columns of foreign producers: refused by column, and row where it is one value's fault."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from framewire import to_table
from framewire.errors import UnsupportedValueError


def _text(data: bytes, offsets: list[int], *, is_large: bool = False) -> pa.Array:
    kind = pa.LargeStringArray if is_large else pa.StringArray
    buffer = pa.py_buffer(np.array(offsets, "i8" if is_large else "i4").tobytes())
    return kind.from_buffers(len(offsets) - 1, buffer, pa.py_buffer(data))


@pytest.mark.parametrize("is_large", [False, True])
def test_invalid_utf8_is_refused_by_row(is_large: bool) -> None:
    bad = _text(b"ab\xffc", [0, 1, 2, 3, 4], is_large=is_large)
    chunks = pa.chunked_array([pa.array(["ok"] * 5, bad.type), bad])
    with pytest.raises(UnsupportedValueError, match="Column 'x', row 7: text that is not UTF-8"):
        to_table(pa.table({"x": chunks}))


def test_invalid_utf8_in_views_and_nested() -> None:
    bad = _text(b"ab\xffc", [0, 1, 2, 3, 4])
    view = pa.array([b"ok", b"\xff"], pa.binary_view())
    view = pa.Array.from_buffers(pa.string_view(), 2, view.buffers())
    with pytest.raises(UnsupportedValueError, match="Column 'v', row 1"):
        to_table(pa.table({"v": view}))
    with pytest.raises(UnsupportedValueError, match="Column 's'"):
        to_table(pa.table({"s": pa.StructArray.from_arrays([bad], ["a"])}))


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([0, 86400], pa.int32()).view(pa.time32("s")), 1),
        (pa.array([-1, 1], pa.int64()).view(pa.time64("ns")), 0),
        (pa.array([0, 5], pa.int64()).view(pa.date64()), 1),
    ],
)
def test_values_that_their_type_does_not_allow(array: pa.Array, row: int) -> None:
    with pytest.raises(UnsupportedValueError, match=f"Column 'x', row {row}: a value that {array.type.id and ''}"):
        to_table(pa.table({"x": array}))


@pytest.mark.parametrize(
    "array",
    [
        _text(b"ab", [0, 100, 2]),
        pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False),
    ],
    ids=["offsets", "indices"],
)
def test_buffers_out_of_bounds_are_refused(array: pa.Array) -> None:
    with pytest.raises(UnsupportedValueError, match="Column 'x' .* is malformed"):
        to_table(pa.table({"x": array}))


ROWS = 1000
LONG = b"a text that is longer than a view"
Words = NDArray[np.int32]


def _views(words: Words, rows_of_data: int = ROWS) -> pa.Array:
    data = pa.py_buffer(LONG * rows_of_data)
    return pa.Array.from_buffers(pa.string_view(), len(words), [None, pa.py_buffer(words.tobytes()), data])


@pytest.fixture
def words() -> Words:
    """``ROWS`` views (length, prefix, buffer, offset) of 33 bytes each, one after the other in one buffer."""
    words = np.zeros((ROWS, 4), np.int32)
    words[:, 0] = len(LONG)
    words[:, 1] = np.frombuffer(LONG[:4], np.int32)
    words[:, 3] = np.arange(ROWS) * len(LONG)
    return words


@pytest.mark.parametrize(("word", "value"), [(0, 2**31 - 1), (2, 7), (3, 2**31 - 40), (3, -5), (0, -1)])
def test_views_that_lead_astray_are_not_followed(words: Words, word: int, value: int) -> None:
    assert to_table(pa.table({"v": _views(words)}))["v"].to_pylist() == [LONG.decode()] * ROWS
    words[ROWS - 3, word] = value
    with pytest.raises(UnsupportedValueError, match="Column 'v'"):
        to_table(pa.table({"v": _views(words)}))


def test_a_last_view_into_a_buffer_that_is_not_there_is_named(
    words: Words,
) -> None:
    """All views before it cover the one buffer from end to end, so that it seems to begin the next."""
    words[-1, 2:] = (7, 0)
    with pytest.raises(UnsupportedValueError, match="Column 'v'"):
        to_table(pa.table({"v": _views(words, ROWS - 1)}))
