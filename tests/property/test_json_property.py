"""The JSON form of values is invertible, given the schema."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framewire.errors import ArgumentError, UnsupportedValueError
from framewire.testing import EXTRA_KINDS, WIRE_KINDS, arrow_types, check_tables, exact_values, tables
from framewire.values.json import decode_column, decode_rows, dumps, encode_column, encode_rows
from framewire.values.type_text import parse_type
from framewire.wire import MAX_SAFE_INTEGER
from tests.property import model

PROFILE = settings.get_profile("long" if os.environ.get("FRAMEWIRE_LONG") == "1" else "default")
KINDS = WIRE_KINDS | EXTRA_KINDS


def _refuse(text: str) -> NoReturn:
    raise AssertionError(f"{text} is not JSON")


def _integers(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in _integers(item)]
    if isinstance(value, list):
        return [number for item in value for number in _integers(item)]
    return [value] if isinstance(value, int) else []


def _inside_years(table: pa.Table) -> pa.Table:
    """The rows that JSON holds; the error for the others names one of them."""
    outside = [not model.json_holds(table.slice(row, 1)) for row in range(table.num_rows)]
    if not any(outside):
        return table
    with pytest.raises(UnsupportedValueError) as caught:
        encode_rows(table)
    assert outside[caught.value.details["row"]]
    assert caught.value.details["column"].startswith(tuple(table.column_names))
    inside = [table.slice(row, 1) for row in range(table.num_rows) if not outside[row]]
    return pa.concat_tables([table.slice(0, 0), *inside])


def test_decode_inverts_encode_for_every_type() -> None:
    def check(drawn: pa.Table) -> None:
        table = _inside_years(drawn)
        text = dumps(encode_rows(table))  # type: ignore[arg-type]
        rows = json.loads(text, parse_constant=_refuse)
        assert all(-MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER for number in _integers(rows))
        back = decode_rows(rows, table.schema)
        back.validate(full=True)
        assert back.schema.equals(table.schema, check_metadata=True)
        assert back.num_rows == table.num_rows
        for name in table.column_names:
            assert exact_values(back[name]) == exact_values(table[name])

    check_tables(check, kinds=KINDS, settings=PROFILE)


def test_chunks_do_not_show() -> None:
    @PROFILE
    @given(tables(max_columns=1))
    def prop(table: pa.Table) -> None:
        column = _inside_years(table).column(0)
        assert encode_column(column, name="c") == [
            value for chunk in column.chunks for value in encode_column(chunk, name="c")
        ]
        assert [encode_column(column.slice(i, 1), name="c")[0] for i in range(len(column))] == encode_column(
            column, name="c"
        )

    prop()


def test_decoding_anything_succeeds_or_names_the_column() -> None:
    values = st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
        max_leaves=6,
    )

    @PROFILE
    @given(st.lists(values, max_size=4), arrow_types(kinds=KINDS), st.booleans())
    def prop(drawn: list[Any], kind: pa.DataType, nullable: bool) -> None:
        refusal: ArgumentError | None = None
        try:
            column = decode_column(drawn, kind, name="the column", nullable=nullable)
        except ArgumentError as error:
            refusal = error
        if refusal is not None:
            assert "the column" in refusal.message
            assert refusal.hint
            return
        column.validate(full=True)
        assert column.type == kind
        assert len(column) == len(drawn)

    prop()


def test_a_type_is_read_back_from_its_text() -> None:
    def check(table: pa.Table) -> None:
        for kind in table.schema.types:
            back = parse_type(str(kind))
            assert str(back) == str(kind)
            if "map<" not in str(kind):  # whether a map's values may be null is not in the text
                assert back == kind

    check_tables(check, kinds=KINDS, settings=PROFILE, max_rows=0)


def test_text_that_is_no_type_is_refused_in_one_way() -> None:
    pieces = st.sampled_from(
        ["list<", "struct<", "map<", "item: ", "int64", ", ", ">", "[3]", " not null", "(5, 2)", "x"]
    )

    @PROFILE
    @given(st.one_of(st.text(max_size=30), st.lists(pieces, max_size=8).map("".join)))
    def prop(text: str) -> None:
        with suppress(ArgumentError):
            assert str(parse_type(text)) == text

    prop()
