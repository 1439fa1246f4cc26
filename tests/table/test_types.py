"""Every Arrow type, in every nesting: exact after an IPC stream and Polars, decoded, or refused by name."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from framewire import to_table
from framewire.errors import UnsupportedTypeError, UnsupportedValueError


def _views(kind: pa.DataType) -> pa.Array:
    return pa.array([None, b"a value longer than twelve bytes", b"short"]).cast(pa.string()).cast(kind)


def _dictionary(values: Any) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), values)


DAYS = [dt.date(2020, 1, 1), None, dt.date(1, 1, 1)]
UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)))
BOOL8 = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8()))
PRICES = [Decimal("1.25"), None, Decimal("-3")]
TWO_UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16], pa.binary(16)))

# Three values each, the type that they have on the wire, and their values there where Python shows them differently.
SAME: dict[str, pa.Array] = {
    **{str(kind): pa.array([1, None, 3], kind) for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
        *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in (None, "UTC", "Europe/Berlin")),
        *(pa.duration(unit) for unit in ("s", "ms", "us")),
    )},
    **{str(kind): pa.array([-0.0, None, math.nan], kind) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    "decimal128": pa.array(PRICES, pa.decimal128(38, 4)),
    "date32": pa.array(DAYS),
    "binary": pa.array([b"\xff", None, b""]),
    "large_binary": pa.array([b"\xff", None, b""], pa.large_binary()),
    "binary_view": _views(pa.binary_view()),
    "fixed_size_binary": pa.array([b"ab", None, b"\xff\xfe"], pa.binary(2)),
    "string": pa.array(["a", None, "é"]),
    "large_string": pa.array(["a", None, "é"], pa.large_string()),
    "string_view": _views(pa.string_view()),
    "dictionary": _dictionary(pa.array(["a", "b"])),
    "dictionary of views": _dictionary(pa.array(["a" * 20, "b"], pa.string_view())),
    "dictionary of ints": _dictionary(pa.array([5, 6])),
    "dictionary of times": _dictionary(pa.array([5, 6], pa.timestamp("us", "UTC"))),
    "dictionary with a null": _dictionary(pa.array([None, "b"])),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
    "empty struct": pa.array([{}, None, {}], pa.struct([])),
    "list": pa.array([[1, None], None, []]),
    "large list": pa.array([[1, None], None, []], pa.large_list(pa.int8())),
    "fixed size list": pa.array([[1, None], None, [2, 3]], pa.list_(pa.int8(), 2)),
    "map": pa.array([[("a", 1), ("a", 2)], None, [("b", None)]], pa.map_(pa.string(), pa.int8())),
}  # fmt: skip
DECODED: dict[str, tuple[pa.Array, pa.DataType]] = {
    "list view": (pa.array([[1], None, [2, 3]], pa.list_view(pa.int8())), pa.list_(pa.int8())),
    "large list view": (pa.array([["a"], None, []], pa.large_list_view(pa.string())), pa.large_list(pa.string())),
    "list view of views": (pa.array([["a" * 20], None, []], pa.list_view(pa.string_view())),
                           pa.list_(pa.string_view())),
    "run ends": (pc.run_end_encode(pa.array(["a", None, "a"])), pa.string()),
    "run ends of views": (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), _views(pa.string_view())[:2]),
                          pa.string_view()),
    "run ends of lists": (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([[1], None])),
                          pa.list_(pa.int64())),
    "date64": (pa.array(DAYS, pa.date64()), pa.date32()),
    "decimal32": (pa.array(PRICES, pa.decimal32(5, 2)), pa.decimal128(5, 2)),
    "decimal64": (pa.array(PRICES, pa.decimal64(12, 2)), pa.decimal128(12, 2)),
    "decimal256": (pa.array(PRICES, pa.decimal256(38, 2)), pa.decimal128(38, 2)),
    "negative scale": (pa.array([Decimal(1200), None, Decimal(100)], pa.decimal128(5, -2)), pa.decimal128(7, 0)),
    "no bytes": (pa.array([b"", None, b""], pa.binary(0)), pa.binary()),
    "no items": (pa.array([[], None, []], pa.list_(pa.int8(), 0)), pa.list_(pa.int8())),
    "offset": (pa.array([1, None, 3], pa.timestamp("us", "+05:30")), pa.timestamp("us", "UTC")),
    "uuid": (UUIDS, pa.binary(16)),
    "bool8": (BOOL8, pa.int8()),
    "dictionary of lists": (_dictionary(pa.array([[1], [2, 3]])), pa.list_(pa.int64())),
    "dictionary of dictionaries": (_dictionary(pa.array(["a", "b"]).dictionary_encode()),
                                   pa.dictionary(pa.int32(), pa.string())),
    "dictionary of uuids": (_dictionary(TWO_UUIDS), pa.dictionary(pa.int8(), pa.binary(16))),
    "dictionary of date64": (_dictionary(pa.array([1, None], pa.date32()).cast(pa.date64())),
                             pa.dictionary(pa.int8(), pa.date32())),
    "metadata inside": (pa.array([[1], None, []], pa.list_(pa.field("item", pa.int8(), metadata={b"\xff": b"\xff"}))),
                        pa.list_(pa.int8())),
}  # fmt: skip
ALL = {**{name: (array, array.type) for name, array in SAME.items()}, **DECODED}


def _plain(value: Any) -> Any:
    """Values that compare: NaN and signed zero by their text, extension values as their storage."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _values(array: Any) -> Any:
    return _plain(array.to_pylist())


def _through_polars(table: pa.Table) -> Any:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    frame = pl.from_arrow(pa.ipc.open_stream(sink.getvalue()).read_all())
    return _values(pa.table(frame)["x"])


def _nestings(array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    yield "plain", array
    yield "list", pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), array)
    yield "large list", pa.LargeListArray.from_arrays(pa.array([0, 2, None, 3], pa.int64()), array)
    yield (
        "fixed size list",
        pa.FixedSizeListArray.from_arrays(pa.concat_arrays([array, array]), 2, mask=pa.array([False, True, False])),
    )
    yield "struct", pa.StructArray.from_arrays([array], ["x"], mask=pa.array([False, False, True]))
    yield "map value", pa.MapArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), pa.array(["k", "l", "k"]), array)
    if not pa.types.is_null(array.type) and array.is_valid()[0].as_py():
        one = pa.concat_arrays([array[:1], array[:1]])
        yield "map key", pa.MapArray.from_arrays(pa.array([0, 1, 1, 2], pa.int32()), one, pa.array([1, 2]))


@pytest.mark.parametrize("name", ALL)
def test_every_type_crosses_in_every_nesting(name: str) -> None:
    for nesting, array in _nestings(ALL[name][0]):
        if nesting == "map key" and name == "dictionary with a null":
            continue
        hides_uuid = "uuid" in name or name == "bool8"
        for part in (array, array[1:], array[1:2], array[:0]):
            expected = _values(part)
            # One chunk is the slice itself; two small ones are merged into an array without offset.
            for chunks in ([part], [part, part]):
                table = to_table(pa.table({"x": pa.chunked_array(chunks)}))
                table.validate(full=True)
                shown = _values(table["x"])
                assert _through_polars(table) == shown, nesting
                if not hides_uuid:
                    assert shown == expected * len(chunks), nesting


@pytest.mark.parametrize("name", ALL)
def test_types_on_the_wire(name: str) -> None:
    array, kind = ALL[name]
    assert to_table(pa.table({"x": array})).schema == pa.schema([("x", kind)])


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_the_far_ends_of_time_cross(unit: str) -> None:
    bound = 2**63 - 1 if unit != "s" else (2**63 - 1) // 1000
    ends = [-bound, bound]
    for kind in (pa.timestamp(unit), pa.timestamp(unit, "UTC"), pa.duration(unit)):
        table = to_table(pa.table({"x": pa.array(ends, pa.int64()).view(kind)}))
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        scale = 1000 if unit == "s" else 1
        assert frame["x"].to_physical().to_list() == [end * scale for end in ends]


def test_extension_values_cross_as_their_storage() -> None:
    table = to_table(pa.table({"u": UUIDS, "b": BOOL8}))
    assert table.to_pydict() == {"u": [b"a" * 16, None, b"b" * 16], "b": [1, None, 0]}


def test_list_views_in_any_order_and_shared() -> None:
    values = pa.array([10, 11, 12])
    views = pa.ListViewArray.from_arrays(pa.array([2, 0, 0], pa.int32()), pa.array([1, 3, 2], pa.int32()), values)
    for part in (views, views[1:]):
        assert to_table(pa.table({"x": part}))["x"].to_pylist() == part.to_pylist()


UNION = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
REFUSED: dict[str, tuple[pa.Array, str, str]] = {
    "union": (UNION, "x", "union"),
    "union in a list": (pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), UNION), "x[]", "union"),
    "interval": (pa.nulls(1, pa.month_day_nano_interval()), "x", "month_day_nano_interval"),
    "wide decimal": (pa.nulls(1, pa.decimal256(40, 2)), "x", "decimal256"),
    "wide scale": (pa.nulls(1, pa.decimal128(2, -37)), "x", "decimal128"),
    "opaque": (pa.nulls(1, pa.opaque(pa.binary(), "t", "v")), "x", "opaque"),
    "twins": (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), "x", "two fields of one name"),
    "NUL": (pa.StructArray.from_arrays([pa.array([1])], ["a\0b"]), "x", "NUL"),
    "unknown zone": (pa.nulls(1, pa.timestamp("us", "Nowhere/Bad")), "x", "Nowhere/Bad"),
    "in a struct": (pa.nulls(1, pa.struct([("a", pa.list_(pa.timestamp("s", "localtime")))])), "x.a[]", "localtime"),
    "map keys": (pa.nulls(1, pa.map_(pa.dictionary(pa.int8(), pa.null()), pa.int8())), "x[].key", "null"),
    "too deep": (
        pa.nulls(1, reduce(lambda kind, _: pa.list_(kind), range(61), pa.int8())),
        "x" + "[]" * 61,
        "60 levels",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_without_an_exact_form_are_refused_by_name(name: str) -> None:
    array, path, words = REFUSED[name]
    with pytest.raises(UnsupportedTypeError) as caught:
        to_table(pa.table({"ok": pa.array([1] * len(array)), "x": array}))
    assert caught.value.message.startswith(f"Column {path!r} is ")
    assert words in caught.value.message
    assert caught.value.details["column"] == path
    assert caught.value.hint


def test_sixty_levels_cross() -> None:
    for wrap in (pa.list_, lambda kind: pa.struct([("a", kind)])):
        deep = reduce(lambda kind, _: wrap(kind), range(60), pa.int8())
        assert _through_polars(to_table(pa.table({"x": pa.nulls(1, deep)}))) == [None]


@pytest.mark.parametrize(
    ("array", "path", "row"),
    [
        (pa.array([0, 2**62], pa.timestamp("s")), "x", 3),
        (pa.array([0, -(2**62)], pa.duration("s")), "x", 3),
        (pa.array([[1], [2, 2**62]], pa.list_(pa.timestamp("s"))), "x[]", 3),
        (pa.array([{"a": [1]}, {"a": [2**62]}], pa.struct([("a", pa.list_(pa.duration("s")))])), "x.a[]", 3),
        (pa.array([[("a", 1)], [("a", 2**62)]], pa.map_(pa.string(), pa.duration("s"))), "x[].value", 3),
    ],
)
def test_seconds_that_polars_would_overflow_are_refused_by_row(array: pa.Array, path: str, row: int) -> None:
    with pytest.raises(UnsupportedValueError, match="too far for milliseconds") as caught:
        to_table(pa.table({"x": pa.chunked_array([array[:1], array[:1], array])}))
    assert (caught.value.details["column"], caught.value.details["row"]) == (path, row)


def test_what_a_null_hides_is_not_refused() -> None:
    hidden = pa.array([[2**62, 1], [1, 1]], pa.list_(pa.int64(), 2)).values.view(pa.timestamp("s"))
    lists = pa.FixedSizeListArray.from_arrays(hidden, 2, mask=pa.array([True, False]))
    structs = pa.StructArray.from_arrays([hidden[:2]], ["a"], mask=pa.array([True, False]))
    for array in (lists, structs):
        assert to_table(pa.table({"x": array}))["x"].to_pylist()[0] is None


def test_what_a_slice_leaves_out_is_not_refused() -> None:
    far = pa.array([[2**62], [1], [2**62]], pa.list_(pa.timestamp("s"), 1))
    for lists in (far, far.cast(pa.list_(pa.timestamp("s")))):
        assert to_table(pa.table({"x": lists[1:2]})).num_rows == 1
        with pytest.raises(UnsupportedValueError, match="row 1:"):
            to_table(pa.table({"x": lists[1:]}))


def test_schema_metadata_is_dropped() -> None:
    field = pa.field("id", pa.int64(), metadata={b"\xff": b"\xff", b"_PL_ENUM_VALUES2": b"1;a"})
    table = to_table(pa.table([pa.array([1])], schema=pa.schema([field], metadata={b"\xff": b"\xff"})))
    assert table.schema.metadata is None
    assert table.schema.field("id").metadata is None, "an Enum's metadata on what is no dictionary would kill Polars"


def test_never_null_is_kept_where_it_is_true() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    assert not to_table(pa.table([pa.array([1])], schema=schema)).schema.field("a").nullable
    assert to_table(pa.table([pa.array([None], pa.int64())], schema=schema)).schema.field("a").nullable


def test_the_table_is_not_changed() -> None:
    for array, _ in ALL.values():
        table = pa.table({"x": array}, metadata={"k": "v"})
        before = (table.schema, _values(table["x"]), [buffer and bytes(buffer) for buffer in array.buffers()])
        to_table(table)
        assert (table.schema, _values(table["x"]), [buffer and bytes(buffer) for buffer in array.buffers()]) == before


def test_run_ends_are_decoded_by_slice() -> None:
    runs = pc.run_end_encode(pa.array(np.repeat([7, 8], 50)))
    assert to_table(pa.table({"r": runs})[49:51])["r"].to_pylist() == [7, 8]
