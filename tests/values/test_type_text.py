"""`str(pa.DataType)` is read back, or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from framewire.errors import ArgumentError
from framewire.values.type_text import parse_type

TYPES = [
    *(
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.date64(),
    ),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.duration("ns")),
    *(
        pa.timestamp("s"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns", "America/Argentina/Salta"),
        pa.timestamp("ms", "+05:30"),
    ),
    *(pa.decimal32(9, 2), pa.decimal64(18, 18), pa.decimal128(38, -3), pa.decimal256(76, 0)),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)),
    *(pa.list_(pa.int64()), pa.large_list(pa.string()), pa.list_view(pa.int8()), pa.large_list_view(pa.int8())),
    *(pa.list_(pa.float32(), 768), pa.list_(pa.field("element", pa.int8(), nullable=False))),
    *(
        pa.struct([]),
        pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.struct([("c", pa.int8())]))]),
    ),
    *(pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.list_(pa.int8()), keys_sorted=True)),
    pa.map_(pa.field("k", pa.int8(), nullable=False), pa.field("the 'v'", pa.int8())),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.uint8(), pa.large_string(), ordered=True)),
    *(pa.uuid(), pa.bool8()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_inverse_of_str(kind: pa.DataType) -> None:
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a, b", "a>", "<", "struct<", "not null", "ünï", "a\nb", "a:b", "'", "[3]"]
)
def test_field_names_with_odd_characters(name: str) -> None:
    kind = pa.struct([pa.field(name, pa.int8(), nullable=False), pa.field("z", pa.list_(pa.field(name, pa.string())))])
    assert parse_type(str(kind)) == kind


def test_a_name_that_prints_like_fields_is_read_as_fields() -> None:
    """The two types print alike; nothing in the text tells them apart."""
    odd = pa.struct([pa.field("a: int8, b", pa.int8())])
    assert parse_type(str(odd)) == pa.struct([("a", pa.int8()), ("b", pa.int8())])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "int",
            "int64 ",
            " int64",
            "Int64",
            "float64",
            "str",
            "timestamp",
            "timestamp[us, tz=]",
            "timestamp[us,tz=UTC]",
        ),
        *(
            "decimal128(39, 1)",
            "decimal128(5)",
            "fixed_size_binary[2147483648]",
            "fixed_size_binary[-1]",
            "decimal128(05, 2)",
            "fixed_size_binary[04]",
            "list<int8>",
        ),
        *(
            "list<item: int8",
            "struct<a>",
            "struct<a: int8,b: int8>",
            "struct<a: int8, >",
            "struct<x: y: int8>",
            "map<string>",
        ),
        *("dictionary<values=string, indices=string, ordered=0>", "dictionary<values=string, indices=int8, ordered=2>"),
        *(
            "dense_union<a: int8=0>",
            "run_end_encoded<run_ends: int32, values: int8>",
            "extension<arrow.json>",
            "int64\n",
        ),
        *(
            "month_day_nano_interval",
            "list<item: " * 100 + "int8" + ">" * 100,
            "x" * ((1 << 20) + 1),
            "decimal128(٥, 1)",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_type(text)
    assert len(str(caught.value)) < 600
