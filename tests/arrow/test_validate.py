from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from framewire.arrow.validate import validate, validation_errors

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
        validate(pa.table({"x": part}))
        assert list(validation_errors([part])) == [None]


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
        validate(pa.table({"x": array}))


def test_malformed_offsets_and_views_are_refused() -> None:
    good = pa.array(["a text that is longer than a view"] * 3, pa.string_view())
    views = np.frombuffer(good.buffers()[1], np.int32).copy()
    for word, value in ((2, 7), (3, 10**6), (0, -5), (1, 0x41414141)):
        broken = views.copy()
        broken[word] = value
        array = pa.Array.from_buffers(pa.string_view(), 3, [None, pa.py_buffer(broken), good.buffers()[2]])
        with pytest.raises((pa.ArrowInvalid, pa.ArrowIndexError)):
            validate(pa.table({"x": array}))
    offsets = pa.py_buffer(np.array([0, 5, 3, 9], np.int32))
    with pytest.raises(pa.ArrowInvalid):
        validate(pa.table({"x": pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"x" * 9)])}))


# --- in threads -------------------------------------------------------------------------------------------------------


def test_large_tables_are_validated_in_threads_and_the_first_fault_is_named() -> None:
    rows = 1_500_000
    bad = _bytes([*[b"fine"] * 10, b"bad \xff"], pa.string())
    table = pa.table({"a": np.arange(rows), "b": np.arange(rows), "c": np.arange(rows)})
    seen: list[str] = []

    def before(array: pa.Array) -> None:
        seen.append(threading.current_thread().name)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("framewire.arrow.threads.processors", lambda: 2)
        validate(table, before)
        found = list(validation_errors([*(column.chunk(0) for column in table.columns), bad, pa.array(["good"])]))
    assert [fault is None for fault in found] == [True, True, True, False, True]
    assert "UTF8" in str(found[3])
    assert {name.split("_")[0] for name in seen} == {"framewire-parallel"}
