"""Join: what the agent may write, what wins, what is kept, and what each mistake is told."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framewire.errors import ArgumentError, UnknownColumnError
from framewire.join import AgentRows, join, parse_abstract, parse_mapping, rename

IDS = pa.field("_row_id", pa.int64(), nullable=False)


def body_of(ids: list[int], **columns: Any) -> pa.Table:
    arrays = [pa.array(ids, pa.int64()), *(pa.array(values) for values in columns.values())]
    fields = [pa.field(name, array.type) for name, array in zip(columns, arrays[1:], strict=True)]
    return pa.table(arrays, schema=pa.schema([IDS, *fields]))


def agent_of(*rows: dict[str, Any]) -> AgentRows:
    agent = parse_abstract(json.dumps(rows))
    assert agent is not None
    return agent


# --- abstract_data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", "  \n", None])
def test_nothing_given_is_none(given: str | None) -> None:
    assert parse_abstract(given) is None


@pytest.mark.parametrize("given", ["[]", " [ ] ", []])
def test_an_empty_list_is_no_rows(given: Any) -> None:
    assert parse_abstract(given) == AgentRows([], {})


def test_rows_become_columns_in_first_seen_order() -> None:
    text = '[{"_row_id": 4, "b": 1}, {"a": "x", "_row_id": 2}, {"_row_id": 9, "a": null, "b": 3}]'
    expected = AgentRows([4, 2, 9], {"b": [1, None, 3], "a": [None, "x", None]})
    assert parse_abstract(text) == expected
    assert parse_abstract(json.loads(text)) == expected
    assert parse_abstract(tuple(json.loads(text))) == expected


def test_the_whole_reply_stands_for_its_abstract() -> None:
    reply = {
        "total_rows": 9,
        "schema": {"a": "int64"},
        "resource_url": "http://x",
        "abstract": [{"_row_id": 3, "a": 1}],
    }
    assert parse_abstract(json.dumps(reply)) == AgentRows([3], {"a": [1]})
    assert parse_abstract(reply) == AgentRows([3], {"a": [1]})


@pytest.mark.parametrize("written", ["3", " 3 ", 3, 3.0, np.int64(3), np.float64(3.0), "003"])
def test_row_ids_by_the_rule(written: Any) -> None:
    agent = parse_abstract([{"_row_id": written}])
    assert agent is not None
    assert agent.ids == [3]
    assert type(agent.ids[0]) is int


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (-1, "-1"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ("", '""'),
        ("-1", '"-1"'),
        ("1.5", '"1.5"'),
        ("x", '"x"'),
        ("٣", '"\\u0663"'),
        ("0-3", '"0-3"'),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (1e300, "1e+300"),
        (2**63, str(2**63)),
        (2.0**60, "1152921504606846976.0"),
        ([1], "[1]"),
        ({"a": 1}, '{"a": 1}'),
        (np.bool_(True), '"bool"'),
    ],
)
def test_other_row_ids_are_refused_by_name(written: Any, shown: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_abstract([{"_row_id": 0}, {"_row_id": written}])
    text = str(caught.value)
    assert "Row 1 of abstract_data" in text
    assert shown[:20].replace("1152921504606846976.0"[:20], "1.152921504606847e+1") in text
    assert "whole numbers from 0" in text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{", "abstract_data is not JSON"),
        ("[1, 2", "abstract_data is not JSON"),
        ("not json", "abstract_data is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"_row_id": 1' + "0" * 5000 + "}]", "too many digits"),
        ('{"_row_id": 1}', "abstract_data is an object, not an array"),
        ('"text"', "abstract_data is text"),
        ("3", "abstract_data is a number"),
        ("null", "abstract_data is null"),
        ("true", "abstract_data is a boolean"),
        ('{"abstract": 3}', "abstract_data is a number"),
        ('{"abstract": "[]"}', "abstract_data is text"),
        ("[1]", "Row 0 of abstract_data is a number"),
        ('[{"_row_id": 0}, null]', "Row 1 of abstract_data is null"),
        ('[{"_row_id": 0}, {"a": 1}]', "Row 1 of abstract_data has no _row_id"),
        ('[{"_row_id": 0}, {"_row_id": "0"}]', "_row_id 0 twice, at positions 0 and 1"),
        ('[{"_row_id": 0, "a": 1, "a": 2}]', "two keys 'a'"),
        ('[{"_row_id": 0, "_row_id": 1}]', "two keys '_row_id'"),
        ('[{"_row_id": 0, "": 1}]', "Row 0 of abstract_data has a key that is not a column name"),
        ('[{"_row_id": 0, "\\ud800": 1}]', "Row 0 of abstract_data has a key that is not a column name"),
        ([{"_row_id": 0, 7: 1}], "Row 0 of abstract_data has a key that is not a column name"),
        (b"[]", "abstract_data is"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_malformed_abstract_data(given: Any, says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_abstract(given)
    assert says in str(caught.value)
    assert caught.value.hint
    str(caught.value).encode()  # fit for any reply


def test_no_cell_is_quoted() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_abstract('[{"_row_id": 0}, "secret-cell"]')
    assert "secret-cell" not in str(caught.value)


# --- join -------------------------------------------------------------------------------------------------------------


def test_no_agent_rows_leave_the_body_alone() -> None:
    body = body_of([0, 1], a=["x", "y"])
    assert join(body, None, selected="rows") is body


def test_nothing_added_is_no_copy() -> None:
    body = body_of([4, 2], a=["x", "y"])
    assert join(body, agent_of({"_row_id": 4, "a": "z"}, {"_row_id": 2}), selected="agent") is body
    assert join(body, agent_of({"_row_id": 2}), selected="rows") is body


def test_the_body_wins() -> None:
    body = body_of([0, 1], price=[1.25, 2.5])
    agent = agent_of({"_row_id": 0, "price": 1.3, "note": "cheap"}, {"_row_id": 1, "price": "2.5"})
    joined = join(body, agent, selected="agent")
    assert joined.to_pydict() == {"_row_id": [0, 1], "price": [1.25, 2.5], "note": ["cheap", None]}
    assert joined.column("price").chunks[0].buffers()[1].address == body.column("price").chunks[0].buffers()[1].address


def test_added_columns_follow_in_first_seen_order_with_their_own_types() -> None:
    body = body_of([0, 1], a=["x", "y"])
    agent = agent_of({"_row_id": 0, "n": 1, "f": 1.5}, {"_row_id": 1, "l": [1, 2], "n": 2})
    joined = join(body, agent, selected="agent")
    assert joined.column_names == ["_row_id", "a", "n", "f", "l"]
    assert joined.schema.field("n").type == pa.int64()
    assert joined.schema.field("f").type == pa.float64()
    assert joined.column("l").to_pylist() == [None, [1, 2]]
    assert joined.schema.field("_row_id") == IDS


def test_row_ids_keep_their_order_and_repeats() -> None:
    body = body_of([3, 0, 3, 7], a=["d", "a", "d", "h"])
    agent = agent_of({"_row_id": 7, "n": 70}, {"_row_id": 3, "n": 30})
    joined = join(body, agent, selected="rows")
    assert joined.to_pydict() == {"_row_id": [3, 0, 3, 7], "a": ["d", "a", "d", "h"], "n": [30, None, 30, 70]}


def test_the_agents_order_rules_when_the_agent_selects() -> None:
    views = pa.array(["zero", "one", "a text that is longer than a view holds"], pa.string_view())
    body = pa.table([pa.array([0, 1, 2]), views], schema=pa.schema([IDS, pa.field("s", pa.string_view())]))
    joined = join(body, agent_of({"_row_id": 2, "n": 1}, {"_row_id": 0}), selected="agent")
    assert joined.schema.field("s").type == pa.string_view()
    assert joined.column("_row_id").to_pylist() == [2, 0]
    assert joined.column("s").to_pylist() == ["a text that is longer than a view holds", "zero"]
    assert joined.column("n").to_pylist() == [1, None]


def test_a_body_that_repeats_an_id_cannot_be_ordered() -> None:
    body = body_of([0, 0, 1], a=["x", "y", "z"])
    with pytest.raises(ArgumentError, match="repeats a _row_id"):
        join(body, agent_of({"_row_id": 1}, {"_row_id": 0}), selected="agent")


@pytest.mark.parametrize("selected", ["agent", "rows"])
def test_an_id_outside_the_body_is_named(selected: Any) -> None:
    agent = agent_of({"_row_id": 1}, {"_row_id": 41}, {"_row_id": 42})
    with pytest.raises(ArgumentError) as caught:
        join(body_of([0, 1], a=["x", "y"]), agent, selected=selected)
    assert "_row_id 41" in caught.value.message
    assert ("row_ids" in caught.value.message) == (selected == "rows")
    assert caught.value.hint


def test_no_rows() -> None:
    body = body_of([], a=pa.array([], pa.decimal128(5, 2)))
    joined = join(body, AgentRows([], {}), selected="agent")
    assert joined.schema == body.schema
    assert joined.num_rows == 0
    none_of_two = join(body_of([0, 1], a=["x", "y"]), AgentRows([], {}), selected="agent")
    assert none_of_two.num_rows == 0
    assert none_of_two.column_names == ["_row_id", "a"]
    assert join(body_of([0, 1]), AgentRows([], {}), selected="rows").num_rows == 2


def test_declared_types_are_the_resources() -> None:
    body = body_of([0, 1])
    agent = agent_of({"_row_id": 0, "day": "2013-01-01", "id": "9007199254740993", "mine": 1}, {"_row_id": 1})
    declared = {"day": pa.date32(), "id": pa.int64(), "absent": pa.string()}
    joined = join(body, agent, selected="agent", declared=declared)
    assert joined.to_pydict() == {
        "_row_id": [0, 1],
        "day": [dt.date(2013, 1, 1), None],
        "id": [9007199254740993, None],
        "mine": [1, None],
    }
    assert joined.schema.field("day").type == pa.date32()


def test_a_value_that_is_not_of_the_declared_type_is_refused() -> None:
    with pytest.raises(ArgumentError, match="day"):
        join(body_of([0]), agent_of({"_row_id": 0, "day": "soon"}), selected="agent", declared={"day": pa.date32()})


def test_declared_string_views_are_spread_over_repeats() -> None:
    agent = agent_of({"_row_id": 1, "s": "a text that is longer than a view holds"})
    joined = join(body_of([1, 0, 1]), agent, selected="rows", declared={"s": pa.string_view()})
    assert joined.schema.field("s").type == pa.string_view()
    long = "a text that is longer than a view holds"
    assert joined.column("s").to_pylist() == [long, None, long]


def test_added_values_of_no_one_type_are_the_callers_mistake() -> None:
    agent = agent_of({"_row_id": 0, "mix": 1}, {"_row_id": 1, "mix": {"secret-cell": 2}})
    with pytest.raises(ArgumentError) as caught:
        join(body_of([0, 1]), agent, selected="agent")
    assert "'mix'" in caught.value.message
    assert "secret-cell" not in str(caught.value)


def test_several_chunks_and_metadata_pass() -> None:
    field = pa.field("e", pa.int64(), metadata={b"k": b"v"})
    chunks = pa.chunked_array([[1, 2], [], [3]], pa.int64())
    body = pa.table([chunks, chunks], schema=pa.schema([IDS, field], metadata={b"m": b"n"}))
    joined = join(body, agent_of({"_row_id": 2, "n": "two"}), selected="rows")
    assert joined.schema.metadata == {b"m": b"n"}
    assert joined.schema.field("e").metadata == {b"k": b"v"}
    assert joined.column("n").to_pylist() == [None, "two", None]


def test_a_million_rows_take_no_python_loop() -> None:
    ids = np.arange(1_000_000)
    body = pa.table([pa.array(ids), pa.array(ids)], schema=pa.schema([IDS, pa.field("v", pa.int64())]))
    joined = join(body, AgentRows([999_999, 5], {"n": ["last", "five"]}), selected="rows")
    assert joined.column("n")[999_999].as_py() == "last"
    assert joined.column("n").null_count == 999_998


# --- column_mapping ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", " ", None, "{}", {}])
def test_no_mapping(given: Any) -> None:
    assert parse_mapping(given) == {}


def test_a_mapping_as_text_or_parsed() -> None:
    assert parse_mapping('{"a": "b"}') == parse_mapping({"a": "b"}) == {"a": "b"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("a=b", "column_mapping is not JSON"),
        ("[]", "column_mapping is an array"),
        ('"a"', "column_mapping is text"),
        ("null", "column_mapping is null"),
        ('{"a": 1}', "column_mapping gives 'a' a number"),
        ('{"a": null}', "column_mapping gives 'a' null"),
        ('{"a": ""}', "column_mapping gives 'a' empty text"),
        ('{"a": "\\ud800"}', "column_mapping gives 'a' text"),
        ('{"a": "b", "a": "c"}', "two keys 'a'"),
        ({1: "b"}, "column_mapping gives 1"),
    ],
)
def test_malformed_mappings(given: Any, says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_mapping(given)
    assert says in str(caught.value)


def test_rename_is_simultaneous() -> None:
    table = body_of([0], a=["x"], b=["y"], c=["z"])
    assert rename(table, {"a": "b", "b": "a"}).column_names == ["_row_id", "b", "a", "c"]
    assert rename(table, {"a": "b", "b": "c", "c": "a"}).to_pydict() == {
        "_row_id": [0],
        "b": ["x"],
        "c": ["y"],
        "a": ["z"],
    }
    assert rename(table, {"a": "a", "_row_id": "_row_id"}).column_names == table.column_names
    assert rename(table, {}) is table


def test_rename_reaches_the_agents_columns() -> None:
    joined = join(body_of([0], a=["x"]), agent_of({"_row_id": 0, "note": "n"}), selected="agent")
    assert rename(joined, {"note": "remark", "a": "b"}).to_pydict() == {"_row_id": [0], "b": ["x"], "remark": ["n"]}


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(UnknownColumnError, match=r"'dep_dely'.*'dep_delay'"):
        rename(body_of([0], dep_delay=[1]), {"dep_dely": "delay"})


@pytest.mark.parametrize("mapping", [{"a": "b"}, {"a": "n", "b": "n"}, {"b": "a"}, {"a": "c", "b": "a", "c": "a"}])
def test_a_collision_names_both(mapping: dict[str, str]) -> None:
    table = body_of([0], a=["x"], b=["y"], c=["z"])
    with pytest.raises(ArgumentError, match=r"would call both '\w' and '\w' '\w'"):
        rename(table, mapping)


@pytest.mark.parametrize("mapping", [{"_row_id": "id"}, {"a": "_row_id"}, {"_row_id": "a", "a": "_row_id"}])
def test_row_ids_keep_their_name(mapping: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match="_row_id is the rows' identity"):
        rename(body_of([0], a=["x"]), mapping)
