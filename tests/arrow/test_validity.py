from __future__ import annotations

import threading
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.arrow.validity import _decimals, faults, is_ascii, validate
from framewire.arrow.validity._ascii import Seen
from framewire.arrow.validity._views import are_plain

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


# --- short views ------------------------------------------------------------------------------------------------------

_LONG = st.text(st.characters(max_codepoint=127), min_size=13, max_size=30).map(str.encode) | st.binary(
    min_size=13, max_size=16
)
_SHORT = st.one_of(
    st.binary(max_size=12), st.text(st.characters(max_codepoint=127), max_size=12).map(str.encode), st.just(b"flag")
)


@given(
    st.lists(_SHORT, max_size=20) | st.lists(_SHORT | _LONG, max_size=20),
    st.sampled_from([1, 60, 2048]),
    st.sampled_from([pa.string_view(), pa.binary_view()]),
    st.none() | st.tuples(st.integers(0, 319), st.integers(0, 255)),
    st.integers(0, 3),
)
def test_views_are_judged_as_arrow_judges_them(
    values: list[bytes], times: int, kind: pa.DataType, edit: tuple[int, int] | None, offset: int
) -> None:
    """Any bytes in any place of the views: lengths that do not fit, padding that is not zero, text that is no UTF-8."""
    array = pa.array(values * times, pa.binary_view())
    views = bytearray(array.buffers()[1])
    if edit is not None and edit[0] < len(views):
        views[edit[0]] = edit[1]
    buffers = [None, pa.py_buffer(bytes(views)), *array.buffers()[2:]]
    altered = pa.Array.from_buffers(kind, len(array), buffers).slice(min(offset, len(array)))
    _judged_alike(altered)


def _judged_alike(array: pa.Array) -> None:
    errors = []
    for check in (lambda: array.validate(full=True), lambda: validate(array)):
        try:
            check()
        except (pa.ArrowInvalid, pa.ArrowIndexError) as exc:
            errors.append(str(exc))
        else:
            errors.append("")
    assert errors[0] == errors[1]


def test_short_ascii_views_are_judged_without_arrow() -> None:
    for values in (["A"] * 70_000, ["AIR", "TRUCK", "", "REG AIR"] * 20_000, ["twelve bytes"], []):
        assert are_plain(pa.array(values, pa.string_view()))
    for values in (["A"] * 70_000 + ["é"], ["a text that is longer than a view"]):
        assert not are_plain(pa.array(values, pa.string_view()))


@given(
    st.lists(st.none() | st.decimals(-(10**19), 10**19, places=2, allow_nan=False), max_size=20),
    st.sampled_from([1, 60, 2048]),
    st.integers(1, 38),
    st.integers(0, 3),
)
def test_decimals_are_judged_as_arrow_judges_them(
    values: list[Decimal | None], times: int, precision: int, offset: int
) -> None:
    """Values of more digits than the type has, of either sign, and what stands under nulls."""
    array = pa.array(values * times, pa.decimal128(38, 2))
    altered = pa.Array.from_buffers(pa.decimal128(precision, 0), len(array), array.buffers(), array.null_count)
    _judged_alike(altered.slice(min(offset, len(array))))


def test_decimals_that_plainly_fit_are_judged_without_arrow() -> None:
    def made(values: list[Decimal | None], precision: int) -> pa.Array:
        return pa.array(values, pa.decimal128(precision, 2))

    assert _decimals.are_plain(made([Decimal("104949.50"), Decimal("0.01"), None] * 30_000, 15))
    assert _decimals.are_plain(made([], 3))
    assert not _decimals.are_plain(made([Decimal("-0.01")], 15))
    assert not _decimals.are_plain(made([Decimal("9.92"), Decimal("0.31")], 3))  # 992 | 31 is 1023


def test_wrong_null_counts_of_views_are_refused() -> None:
    good = pa.array(["a", None, "b"], pa.string_view())
    wrong = pa.Array.from_buffers(pa.string_view(), 3, good.buffers(), null_count=2)
    with pytest.raises(pa.ArrowInvalid):
        validate(wrong)


def test_buffers_side_by_side_are_looked_at_at_once() -> None:
    whole = pa.py_buffer(b"a" * 1000 + b"\0" * 40 + b"b" * 1000 + b"\xff" * 200 + b"c" * 1000)
    pieces = [whole.slice(0, 1000), whole.slice(1040, 1000), whole.slice(2240, 1000), whole.slice(0, 0)]
    looked: list[int] = []

    class Spy(Seen):
        def is_ascii(self, buffer: pa.Buffer) -> bool:
            looked.append(buffer.size)
            return super().is_ascii(buffer)

    assert Spy().are_ascii(reversed(pieces))
    assert looked == [2040, 1000]
    assert not Seen().are_ascii([whole.slice(0, 1000), whole.slice(1040, 1001)])
    assert not Seen().are_ascii([whole])
    assert Seen().are_ascii([])


# --- in threads -------------------------------------------------------------------------------------------------------


def test_large_tables_are_validated_in_threads_and_the_first_fault_is_named() -> None:
    rows = 1_500_000
    bad = _bytes([*[b"fine"] * 10, b"bad \xff"], pa.string())
    table = pa.table({"a": np.arange(rows), "b": np.arange(rows), "c": np.arange(rows)})
    seen: list[str] = []

    class Spy(Seen):
        def is_ascii(self, buffer: object) -> bool:
            seen.append(threading.current_thread().name)
            return super().is_ascii(buffer)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("framewire.arrow.validity.Seen", Spy)
        patched.setattr("framewire.arrow.threads.processors", lambda: 2)
        validate(table)
        found = list(faults([*(column.chunk(0) for column in table.columns), bad, pa.array(["good"])]))
    assert [fault is None for fault in found] == [True, True, True, False, True]
    assert "UTF8" in str(found[3])
    assert {name.split("_")[0] for name in seen} == {"framewire-parallel"}
