"""Rows that are not published, and rows that are not selected, leave no byte in what is sent."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framewire import to_table
from framewire.arrow.take import filter_rows, take_rows
from framewire.plane import DataPlane
from framewire.testing import arrow_types, kinds_of
from tests.property.wire_client import ARROW, JSON, VIEWS, Wire

MARK: Final = b"CANARY-8"
"""Eight bytes, so that numbers can hold them too."""
LONG: Final = MARK.decode() + " and a tail that is longer than a view holds"
(_NUMBER,) = struct.unpack("<q", MARK)
(_FLOAT,) = struct.unpack("<d", MARK)
_WIDE: Final = int.from_bytes(MARK * 2, "little")

# What is hidden, and what is shown, of each innermost kind that has room for the mark.
_VALUES: Final[dict[str, tuple[Any, Any]]] = {
    **dict.fromkeys(("int64", "uint64", "timestamp", "zoned timestamp", "duration"), (_NUMBER, 1)),
    "float64": (_FLOAT, 0.5),
    "decimal128": (Decimal(_WIDE), Decimal(1)),
    **dict.fromkeys(("string", "large_string", "string_view"), (LONG, "shown")),
    **{kind: (LONG.encode(), b"shown") for kind in ("binary", "large_binary", "binary_view")},
    "fixed_size_binary": (MARK * 2, b"\1" * 16),
}
_NESTED: Final = frozenset(
    {"list", "large_list", "list_view", "large_list_view", "fixed_size_list", "struct", "map", "dictionary"}
)
KINDS: Final = frozenset(_VALUES) | _NESTED
ROWS: Final = 8


def _has_room(kind: pa.DataType) -> bool:
    """Whether a value of the type can hold the mark: not every width of the kinds above can."""
    if pa.types.is_fixed_size_list(kind) and kind.list_size == 0:
        return False
    if pa.types.is_dictionary(kind):
        return _has_room(kind.value_type)
    if kind.num_fields:
        return all(_has_room(kind.field(at).type) for at in range(kind.num_fields))
    if pa.types.is_struct(kind):
        return False
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return bool(kind.byte_width == 16)
    if pa.types.is_decimal(kind):
        return bool(kind.precision == 38)
    return bool(getattr(kind, "unit", "") != "s")


def _array(kind: pa.DataType, hidden: list[bool]) -> pa.Array:
    """One value a row; the hidden ones hold the mark in every place that has room for it."""
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            pa.array(list(map(int, hidden)), kind.index_type),
            _array(kind.value_type, [False, True]),
            ordered=kind.ordered,
        )
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_array(field.type, hidden) for field in kind], fields=list(kind))
    if pa.types.is_map(kind):
        offsets = pa.array(range(len(hidden) + 1), pa.int32())
        return pa.MapArray.from_arrays(
            offsets, _array(kind.key_type, hidden), _array(kind.item_type, hidden), type=kind
        )
    if pa.types.is_fixed_size_list(kind):
        items = _array(kind.value_type, [flag for flag in hidden for _ in range(kind.list_size)])
        return pa.FixedSizeListArray.from_arrays(items, type=kind)
    if pa.types.is_nested(kind):
        items = _array(kind.value_type, [flag for flag in hidden for _ in range(2)])
        wide = "large" in str(kind).split("<")[0]
        starts = pa.array(range(0, 2 * len(hidden) + 1, 2), pa.int64() if wide else pa.int32())
        if "view" in str(kind).split("<")[0]:
            make = pa.LargeListViewArray if wide else pa.ListViewArray
            return make.from_arrays(starts[:-1], pa.array([2] * len(hidden), starts.type), items, type=kind)
        return (pa.LargeListArray if wide else pa.ListArray).from_arrays(starts, items, type=kind)
    (name,) = kinds_of(kind)
    if name == "decimal128":
        raw = b"".join((_WIDE if flag else 10**kind.scale).to_bytes(16, "little") for flag in hidden)
        return pa.Array.from_buffers(kind, len(hidden), [None, pa.py_buffer(raw)])
    values = [_VALUES[name][not flag] for flag in hidden]
    if name in ("timestamp", "zoned timestamp", "duration"):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def _under_nulls(array: pa.Array, hidden: list[bool]) -> pa.Array:
    """The same memory, the hidden rows null."""
    kind = array.type
    validity = pa.array([not flag for flag in hidden]).buffers()[1]
    if pa.types.is_dictionary(kind):
        indices = pa.Array.from_buffers(kind.index_type, len(array), [validity, array.indices.buffers()[1]])
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=kind.ordered)
    if pa.types.is_struct(kind):
        children = [array.field(at) for at in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), [validity], children=children)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, len(array), [validity, array.buffers()[1]], children=[entries])
    if kind.num_fields:
        own = 1 if pa.types.is_fixed_size_list(kind) else 3 if "view" in str(kind).split("<")[0] else 2
        return pa.Array.from_buffers(kind, len(array), [validity, *array.buffers()[1:own]], children=[array.values])
    return pa.Array.from_buffers(kind, len(array), [validity, *array.buffers()[1:]])


Hide = Callable[[pa.Array, list[bool]], Any]


def _polars(array: pa.Array) -> pl.DataFrame:
    """A frame that shows all rows."""
    frame = pl.from_arrow(to_table(pa.table({"x": array})))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _shown(hidden: list[bool]) -> list[int]:
    return [at for at, flag in enumerate(hidden) if not flag]


def _run(hidden: list[bool]) -> tuple[int, int]:
    """The longest run of rows that are shown, for those ways that cut a slice."""
    runs = [(start, stop) for start in range(len(hidden)) for stop in range(start, len(hidden) + 1)]
    return max((run for run in runs if not any(hidden[slice(*run)])), key=lambda run: run[1] - run[0])


def _pandas(array: pa.Array) -> Any:
    return pa.table({"x": array}).to_pandas(types_mapper=pd.ArrowDtype)


WAYS: Final[dict[str, Hide]] = {
    "slice": lambda array, hidden: pa.table({"x": array[slice(*_run(hidden))]}),
    "slice of a batch": lambda array, hidden: pa.record_batch({"x": array})[slice(*_run(hidden))],
    "reader": lambda array, hidden: pa.table({"x": array})[slice(*_run(hidden))].to_reader(),
    "filter": lambda array, hidden: pa.table({"x": filter_rows(array, pc.invert(pa.array(hidden)))}),
    "take": lambda array, hidden: pa.table({"x": take_rows(array, pa.array(_shown(hidden), pa.int64()))}),
    "null": lambda array, hidden: pa.table({"x": _under_nulls(array, hidden)}),
    "null parent": lambda array, hidden: pa.table(
        {"x": _under_nulls(pa.StructArray.from_arrays([array], ["a"]), hidden)}
    ),
    "null list": lambda array, hidden: pa.table(
        {"x": _under_nulls(pa.FixedSizeListArray.from_arrays(array, 1), hidden)}
    ),
    "polars filter": lambda array, hidden: _polars(array).filter(pl.Series(hidden).not_()),
    "polars slice": lambda array, hidden: _polars(array)[slice(*_run(hidden))],
    "polars lazy": lambda array, hidden: _polars(array).lazy().filter(pl.Series(hidden).not_()),
    "polars when": lambda array, hidden: _polars(array).select(pl.when(pl.Series(hidden).not_()).then(pl.col("x"))),
    "pandas": lambda array, hidden: _pandas(array)[slice(*_run(hidden))].reset_index(drop=True),
    "rows": lambda array, hidden: [{"x": "shown"} for flag in hidden if not flag],
}


@pytest.fixture(scope="module")
def line() -> Iterator[Wire]:
    with DataPlane() as plane, Wire(plane) as line:
        yield line


HIDDEN = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).filter(any)


def _check(check: Callable[[pa.DataType, list[bool]], None]) -> None:
    """Run a check on drawn types, and see to it that every kind was among them."""
    seen: set[str] = set()

    def run(kind: pa.DataType, hidden: list[bool]) -> None:
        seen.update(kinds_of(kind))
        check(kind, hidden)

    given(arrow_types(kinds=KINDS).filter(_has_room), HIDDEN)(run)()
    for name in sorted(KINDS - seen):
        settings(max_examples=5)(given(arrow_types(kinds=KINDS, outermost=name).filter(_has_room), HIDDEN)(run))()
    assert seen == KINDS


def _assert_no_mark(sent: bytes, way: str) -> None:
    assert MARK not in sent, way
    assert str(_NUMBER).encode() not in sent, way


def test_no_byte_of_what_is_not_published_is_stored(line: Wire) -> None:
    """Whatever hid it: slices, filters, takes, nulls, in Arrow, Polars or pandas."""

    def check(kind: pa.DataType, hidden: list[bool]) -> None:
        array = _array(kind, hidden)
        array.validate(full=True)
        for way, hide in WAYS.items():
            handle = line.plane.publish(hide(array, hidden))
            _assert_no_mark(line.ask(handle, VIEWS), way)
            _assert_no_mark(line.ask(handle, ARROW), way)
            line.plane.revoke(handle)

    _check(check)


def test_no_byte_of_what_is_not_selected_is_sent(line: Wire) -> None:
    """Every row is published; an answer holds the rows and columns that were asked for."""

    def check(kind: pa.DataType, hidden: list[bool]) -> None:
        other = _array(kind, [True] * ROWS)
        handle = line.plane.publish(pa.table({"x": _array(kind, hidden), "other": other, "n": range(ROWS)}))
        assert MARK in line.ask(handle, VIEWS), "the mark is there to be found"
        start, stop = _run(hidden)
        rows: list[Any] = [_shown(hidden), [f"{start}-{stop - 1}"] if stop > start else []]
        for row_ids in rows:
            payload = {"row_ids": row_ids, "columns": ["n", "x"]}
            for headers in (VIEWS, ARROW, JSON):
                _assert_no_mark(line.ask(handle, headers, payload), str(headers))
        line.plane.revoke(handle)

    _check(check)
