"""The JSON form of each type, its inverse, and what is refused with which words."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from framewire.errors import ArgumentError, UnsupportedTypeError, UnsupportedValueError
from framewire.testing import exact_values
from framewire.values.json import decode_column, decode_rows, dumps, encode_column, encode_rows

NAN, INF = float("nan"), float("inf")
SAFE = (1 << 53) - 1


def _ticks(kind: pa.DataType, *ticks: int | None) -> pa.Array:
    return pa.array(ticks, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


FORMS: list[tuple[pa.Array, list[Any]]] = [
    (pa.nulls(2), [None, None]),
    (pa.array([True, None, False]), [True, None, False]),
    (pa.array([-128, 127, None], pa.int8()), [-128, 127, None]),
    (pa.array([SAFE, SAFE + 1, -SAFE, -SAFE - 1, None]), [SAFE, str(SAFE + 1), -SAFE, str(-SAFE - 1), None]),
    (pa.array([-(1 << 63), (1 << 63) - 1]), ["-9223372036854775808", "9223372036854775807"]),
    (pa.array([(1 << 64) - 1, 0], pa.uint64()), ["18446744073709551615", 0]),
    (pa.array([0.1, -0.0, NAN, INF, -INF, None]), [0.1, -0.0, "NaN", "Infinity", "-Infinity", None]),
    (
        pa.array([0.1, 3.4028234663852886e38, 16777216.0, NAN, None], pa.float32()),
        [0.1, 3.4028235e38, 16777216.0, "NaN", None],
    ),
    (pa.array(np.array([0.1, 65504, -0.0], np.float16)), [0.1, 65500.0, -0.0]),
    (pa.array([Decimal("1.20"), None, Decimal("-0.01")], pa.decimal128(5, 2)), ["1.20", None, "-0.01"]),
    (pa.array([Decimal(0), Decimal("1E-38")], pa.decimal128(38, 38)), ["0." + "0" * 38, "0." + "0" * 37 + "1"]),
    (pa.array([Decimal("100"), Decimal("0")], pa.decimal128(5, -2)), ["100", "0"]),
    (_ticks(pa.date32(), 15706, None), ["2013-01-01", None]),
    (_ticks(pa.date32(), -719162, 2932896), ["0001-01-01", "9999-12-31"]),
    (_ticks(pa.timestamp("s"), 253402300799), ["9999-12-31T23:59:59"]),
    (_ticks(pa.timestamp("ms", "UTC"), -62135596800000), ["0001-01-01T00:00:00Z"]),
    (_ticks(pa.date64(), 15706 * 86_400_000), ["2013-01-01"]),
    (_ticks(pa.time32("s"), 0, 18000), ["00:00:00", "05:00:00"]),
    (_ticks(pa.time32("ms"), 18000250), ["05:00:00.250"]),
    (_ticks(pa.time64("ns"), 86_399_999_999_999, 1), ["23:59:59.999999999", "00:00:00.000000001"]),
    (
        _ticks(pa.timestamp("us"), 1357016400 * 10**6, 1, -1, None),
        ["2013-01-01T05:00:00", "1970-01-01T00:00:00.000001", "1969-12-31T23:59:59.999999", None],
    ),
    (_ticks(pa.timestamp("s", "Asia/Tokyo"), 1357016400), ["2013-01-01T05:00:00Z"]),
    (_ticks(pa.timestamp("s", "No/Such_Zone"), 1357016400), ["2013-01-01T05:00:00Z"]),
    (
        _ticks(pa.timestamp("ns"), -(1 << 63), (1 << 63) - 1),
        ["1677-09-21T00:12:43.145224192", "2262-04-11T23:47:16.854775807"],
    ),
    (_ticks(pa.duration("ms"), -3500, 0, 60000, None), ["PT-3.500S", "PT0S", "PT60S", None]),
    (_ticks(pa.duration("ns"), -(1 << 63)), ["PT-9223372036.854775808S"]),
    (pa.array(["NaN", "", "é", None]), ["NaN", "", "é", None]),
    (pa.array(["a long text in its own buffer"], pa.string_view()), ["a long text in its own buffer"]),
    (pa.array([b"\x00\xff", b"", None], pa.large_binary()), ["AP8=", "", None]),
    (pa.array([b"abcd"], pa.binary(4)), ["YWJjZA=="]),
    (pa.array([[1, None], [], None]), [[1, None], [], None]),
    (pa.array([[[1.5]], [None]], pa.large_list(pa.list_(pa.float32()))), [[[1.5]], [None]]),
    (pa.array([[b"a", None], None], pa.list_(pa.binary(), 2)), [["YQ==", None], None]),
    (pa.array([[1], None, [2, 3]], pa.list_view(pa.int8())), [[1], None, [2, 3]]),
    (
        pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        [{"a": 1, "b": "x"}, None],
    ),
    (pa.array([{}, None], pa.struct([])), [{}, None]),
    (pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int8())), [[{"key": "k", "value": 1}], [], None]),
    (pa.array(["b", None, "a", "b"]).dictionary_encode(), ["b", None, "a", "b"]),
    (pa.array(["b"]).cast(pa.string_view()).cast(pa.string()).dictionary_encode(), ["b"]),
]


@pytest.mark.parametrize(("array", "form"), FORMS, ids=[str(array.type) for array, _ in FORMS])
def test_form_and_inverse(array: pa.Array, form: list[Any]) -> None:
    encoded = encode_column(array, name="c")
    assert dumps(encoded) == dumps(form)
    assert list(map(type, encoded)) == list(map(type, form))
    back = decode_column(json.loads(dumps(encoded)), array.type, name="c")
    back.validate(full=True)
    assert back.type == array.type
    assert exact_values(back) == exact_values(array)


OUTSIDE_YEARS: list[pa.Array] = [
    _ticks(pa.date32(), -719163),
    _ticks(pa.date32(), 2932897),
    _ticks(pa.date32(), -(1 << 31)),
    _ticks(pa.date64(), -719163 * 86_400_000),
    _ticks(pa.timestamp("s"), 253402300800),
    _ticks(pa.timestamp("ms"), -62135596800001),
    _ticks(pa.timestamp("us"), -(1 << 63)),
    _ticks(pa.timestamp("s", "UTC"), 253402300800),
    _ticks(pa.timestamp("s", "Asia/Tokyo"), -(1 << 63)),
]


@pytest.mark.parametrize("far", OUTSIDE_YEARS, ids=[str(array.type) for array in OUTSIDE_YEARS])
def test_a_year_outside_1_to_9999_is_refused_by_column_and_row(far: pa.Array) -> None:
    near = _ticks(far.type, 0, None)
    with pytest.raises(UnsupportedValueError, match=r"^Column 'day', row 3: .* outside the years 1 to 9999") as caught:
        encode_rows(pa.table({"day": pa.chunked_array([near, pa.concat_arrays([near, far]).slice(1)])}))
    assert caught.value.details == {"column": "day", "row": 3, "kind": str(far.type)}
    assert "abstract_domains" in caught.value.hint
    assert "Arrow" in caught.value.hint
    assert "integers" in caught.value.hint
    with pytest.raises(UnsupportedValueError, match="row 1003"):
        encode_rows(pa.table({"day": pa.chunked_array([near, near.slice(1), far])}), first_row=1000)


def test_a_year_outside_1_to_9999_is_refused_at_any_depth() -> None:
    days = _ticks(pa.date32(), 0, 2932897)
    struct = pa.StructArray.from_arrays([days], ["d"])
    for array, path in (
        (pa.ListArray.from_arrays(pa.array([0, 0, 1, 2], pa.int32()), struct), r"day\[\]\.d"),
        (pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), days), "day"),
        (
            pa.FixedSizeListArray.from_arrays(pa.concat_arrays([days.slice(0, 1), days.slice(0, 1), days]), 2),
            r"day\[\]",
        ),
    ):
        with pytest.raises(UnsupportedValueError, match=rf"^Column '{path}', row {len(array) - 1}: "):
            encode_column(array, name="day")


def test_a_year_that_no_row_shows_is_not_refused() -> None:
    days = _ticks(pa.date32(), 0, 2932897)
    hidden = pa.array([False, True])
    for array in (
        pa.StructArray.from_arrays([days], ["d"], mask=hidden),
        pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), days, mask=hidden),
        pa.FixedSizeListArray.from_arrays(days, 1, mask=hidden),
        pa.ListViewArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array([1, 1], pa.int32()), days),
        pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), days),
        pa.array([0, None], pa.date32()),
    ):
        assert "1970-01-01" in dumps(encode_column(array, name="day"))


def test_slices_and_chunks_show_their_own_rows_only() -> None:
    for array, form in FORMS:
        assert dumps(encode_column(array.slice(1), name="c")) == dumps(form[1:])
        assert dumps(encode_column(pa.chunked_array([array, array.slice(1)], type=array.type), name="c")) == dumps(
            form + form[1:]
        )


def test_a_float32_that_would_round_twice_keeps_all_digits() -> None:
    """All float32 values of some exponents: the text of each, read as JSON reads it, is the same float32 again."""
    bits = np.concatenate(
        [np.arange(1, 200_000, 7), np.arange(0x7F000000, 0x7F7FFFFF, 97), np.arange(0x3DCC0000, 0x3DD00000)]
    )
    array = pa.array(bits.astype(np.uint32).view(np.float32))
    back = decode_column(json.loads(dumps(encode_column(array, name="c"))), pa.float32(), name="c")
    assert back.equals(array)


def test_every_float16() -> None:
    array = pa.array(np.arange(1 << 16).astype(np.uint16).view(np.float16))
    back = decode_column(json.loads(dumps(encode_column(array, name="c"))), pa.float16(), name="c")
    assert exact_values(back) == exact_values(array)


def test_run_ends_and_extensions_have_their_values_form() -> None:
    assert encode_column(pc.run_end_encode(pa.array([7, 7, None])), name="c") == [7, 7, None]
    uuids = pa.array([b"\x00" * 16, None], pa.uuid())
    assert encode_column(uuids, name="c") == ["AAAAAAAAAAAAAAAAAAAAAA==", None]
    assert decode_column(encode_column(uuids, name="c"), pa.uuid(), name="u").equals(uuids)


def test_rows() -> None:
    table = pa.table({"_row_id": pa.array([0, 1]), "x": pa.array([1 << 60, None]), "s": ["a", "b"]})
    rows = encode_rows(table)
    assert rows == [{"_row_id": 0, "x": str(1 << 60), "s": "a"}, {"_row_id": 1, "x": None, "s": "b"}]
    assert [list(row) for row in rows] == [table.column_names] * 2
    assert decode_rows(rows, table.schema).equals(table)
    assert decode_rows([{}, {"x": 5}], pa.schema([("x", pa.int8())])).to_pydict() == {"x": [None, 5]}


def test_rows_without_columns_and_columns_without_rows() -> None:
    bare = pa.table({"x": [1, 2, 3]}).select([])
    assert encode_rows(bare) == [{}, {}, {}]
    assert decode_rows([{}, {}, {}], bare.schema).num_rows == 3
    empty = pa.schema([("x", pa.timestamp("ns", "UTC")), ("l", pa.list_(pa.string_view()))]).empty_table()
    assert encode_rows(empty) == []
    assert decode_rows([], empty.schema).equals(empty)


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        ("3", pa.int8(), 3),
        (3.0, pa.int64(), 3),
        ("-9223372036854775808", pa.int64(), -(1 << 63)),
        ("+7", pa.uint8(), 7),
        (5, pa.float64(), 5.0),
        (10**20, pa.float64(), 1e20),
        (0.1, pa.float32(), float(np.float32(0.1))),
        (3, pa.decimal128(5, 2), Decimal("3.00")),
        ("1E2", pa.decimal128(5, 2), Decimal("100.00")),
        ("2013-01-01T05:00:00+02:00", pa.timestamp("s", "UTC"), 1357009200),
        ("2013-01-01 05:00:00", pa.timestamp("s"), 1357016400),
        ("PT1.5S", pa.duration("us"), 1_500_000),
        ("-PT1S", pa.duration("s"), -1),
        ("05:00:00.5", pa.time32("ms"), 18000500),
    ],
)
def test_what_agents_make_of_it_is_read_where_that_is_exact(value: Any, kind: pa.DataType, stored: Any) -> None:
    scalar = decode_column([None, value], kind, name="c")[1]
    assert (scalar.value if pa.types.is_temporal(kind) else scalar.as_py()) == stored


REFUSED: list[tuple[Any, pa.DataType, str]] = [
    (1, pa.null(), "an integer"),
    (1, pa.bool_(), "an integer"),
    ("true", pa.bool_(), "text"),
    (True, pa.int64(), "a boolean"),
    (1.5, pa.int64(), "a number"),
    ("1.5", pa.int64(), "text"),
    ("", pa.int64(), "text"),
    (128, pa.int8(), "an integer is out of range"),
    (-1, pa.uint64(), "an integer is out of range"),
    (1 << 63, pa.int64(), "out of range"),
    (2.0**60, pa.int64(), "a number"),
    ("1" * 50, pa.int64(), "text"),
    ("١", pa.int64(), "text"),
    (NAN, pa.int64(), "a number"),
    ("1.5", pa.float64(), "text"),
    ("nan", pa.float64(), "text"),
    (True, pa.float64(), "a boolean"),
    ((1 << 53) + 1, pa.float64(), "an integer"),
    (1e300, pa.float32(), "a number"),
    (1e5, pa.float16(), "a number"),
    (10**400, pa.float64(), "an integer"),
    (1.5, pa.decimal128(5, 2), "a number"),
    ("1.234", pa.decimal128(5, 2), "text"),
    ("12345", pa.decimal128(5, 2), "text"),
    ("NaN", pa.decimal128(5, 2), "text"),
    ("1E999999999", pa.decimal128(5, 2), "text"),
    (10**90, pa.decimal128(5, 2), "an integer"),
    ("2013-02-30", pa.date32(), "text"),
    ("2013-1-1", pa.date32(), "text"),
    (15706, pa.date32(), "an integer"),
    ("0000-12-31", pa.date32(), "text is outside the years 1 to 9999"),
    ("+999999999999-01-01", pa.date32(), "text does not fit"),
    ("+010000-01-01", pa.date64(), "text does not fit"),
    ("0000-12-31T23:59:59", pa.timestamp("us"), "text is outside the years 1 to 9999"),
    ("9999-12-31T23:00:00-01:00", pa.timestamp("s", "UTC"), "text is outside the years 1 to 9999"),
    ("-000044-03-15T00:00:00Z", pa.timestamp("ms", "UTC"), "text does not fit"),
    ("24:00:00", pa.time32("s"), "text"),
    ("05:00:00.5", pa.time32("s"), "text"),
    ("05:00", pa.time32("s"), "text"),
    ("2013-01-01T05:00:00", pa.timestamp("us", "UTC"), "text"),
    ("2013-01-01T05:00:00Z", pa.timestamp("us"), "text"),
    ("2013-01-01T05:00:00.0000001", pa.timestamp("us"), "text"),
    ("3000-01-01T00:00:00", pa.timestamp("ns"), "text"),
    ("P1D", pa.duration("s"), "text"),
    ("PT0.5S", pa.duration("s"), "text"),
    ("PT99999999999999999999S", pa.duration("ns"), "text"),
    (1, pa.string(), "an integer"),
    ("\ud800", pa.string(), "text"),
    (["a"], pa.string(), "an array"),
    ({"a": 1}, pa.large_string(), "an object"),
    ("YQ", pa.binary(), "text"),
    ("YQ==\n", pa.binary(), "text"),
    ("YR==", pa.binary(), "text"),
    ("Y Q==", pa.binary(), "text"),
    ("é", pa.binary(), "text"),
    ("YQ==", pa.binary(2), "text"),
    (1, pa.binary(), "an integer"),
    ("ab", pa.list_(pa.string()), "text"),
    ({"a": 1}, pa.list_(pa.int8()), "an object"),
    ([1], pa.list_(pa.int8(), 2), "an array has another number"),
    ([1], pa.struct([("a", pa.int8())]), "an array"),
    ({"b": 1}, pa.struct([("a", pa.int8())]), "an object has fields"),
    ({}, pa.struct([pa.field("a", pa.int8(), nullable=False)]), "null is not allowed"),
    ([None], pa.list_(pa.field("item", pa.int8(), nullable=False)), "null is not allowed"),
    ([["k", 1]], pa.map_(pa.string(), pa.int8()), "an array is not a map entry"),
    ([{"key": None, "value": 1}], pa.map_(pa.string(), pa.int8()), "null"),
    (1, pa.dictionary(pa.int8(), pa.string()), "an integer"),
]


@pytest.mark.parametrize(
    ("value", "kind", "words"), REFUSED, ids=[f"{kind}-{i}" for i, (_, kind, _) in enumerate(REFUSED)]
)
def test_what_does_not_fit_is_refused_by_column_row_and_kind(value: Any, kind: pa.DataType, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        decode_column([None, None, value], kind, name="price")
    message = caught.value.message
    assert message.startswith("Column 'price")
    assert "row 2" in message
    assert words in message
    assert caught.value.hint
    if isinstance(value, str | float) and len(str(value)) > 4:
        assert str(value) not in str(caught.value).replace(caught.value.hint, "")


def test_nested_errors_name_the_row_of_the_table() -> None:
    kind = pa.list_(pa.struct([("a", pa.list_(pa.int8(), 2))]))
    rows = [[], None, [{"a": [1, 2]}, None, None], [{"a": [1, 2]}, {"a": [3, 4000]}]]
    with pytest.raises(ArgumentError, match=r"Column 'c\[\]\.a\[\]', row 3: an integer is out of range"):
        decode_column(rows, kind, name="c")


def test_a_hidden_value_is_in_no_message() -> None:
    for kind in (
        pa.int8(),
        pa.decimal128(5, 2),
        pa.date32(),
        pa.float64(),
        pa.binary(),
        pa.bool_(),
        pa.list_(pa.int8()),
    ):
        with pytest.raises(ArgumentError) as caught:
            decode_column(["secret-cell"], kind, name="c")
        assert "secret" not in str(caught.value)


def test_null_where_none_may_be() -> None:
    with pytest.raises(ArgumentError, match=r"Column 'c', row 1: null is not allowed"):
        decode_column([1, None], pa.int64(), name="c", nullable=False)
    with pytest.raises(ArgumentError, match=r"Column 'x', row 0"):
        decode_rows([{}], pa.schema([pa.field("x", pa.int8(), nullable=False)]))


def test_a_null_struct_may_stand_over_a_field_that_may_not_be_null() -> None:
    kind = pa.struct([pa.field("a", pa.int8(), nullable=False)])
    assert decode_column([None, {"a": 1}], kind, name="c").to_pylist() == [None, {"a": 1}]


def test_rows_that_are_none() -> None:
    schema = pa.schema([("x", pa.int8())])
    with pytest.raises(ArgumentError, match="Row 1 has a key 'y'"):
        decode_rows([{"x": 1}, {"y": 2}], schema)
    with pytest.raises(ArgumentError, match="Row 0 is not an object"):
        decode_rows([3], schema)  # type: ignore[list-item]


def test_more_values_than_codes() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    assert decode_column([str(i) for i in range(128)], kind, name="c").to_pylist()[-1] == "127"
    with pytest.raises(ArgumentError, match="Column 'c', row 128"):
        decode_column([str(i) for i in range(129)], kind, name="c")


def test_a_type_from_outside_cannot_ask_for_memory() -> None:
    for kind in (pa.binary((1 << 31) - 1), pa.list_(pa.int8(), (1 << 31) - 1)):
        with pytest.raises(ArgumentError, match="too much"):
            decode_column([None], kind, name="c")


def test_types_without_a_form() -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    for array in (
        union,
        twins,
        pa.nulls(1, pa.month_day_nano_interval()),
        pa.array([[1]]).cast(pa.list_(pa.int8())).slice(0, 0),
    ):
        if len(array):
            with pytest.raises(UnsupportedTypeError):
                encode_column(array, name="c")


def test_dumps_is_compact_and_strict() -> None:
    assert dumps({"a": [1, "é", None, -0.0]}) == '{"a":[1,"é",null,-0.0]}'
    assert dumps("\ud800") == '"\ud800"'
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps([NAN])
