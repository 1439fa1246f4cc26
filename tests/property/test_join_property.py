"""Join against a naive model: dicts, lists and loops."""

from __future__ import annotations

import json
from typing import Any, Literal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from framewire.errors import ArgumentError, S2SPError
from framewire.join import join, parse_abstract, rename

NAMES = ["a", "b", "c", "d"]
NAME = st.sampled_from(NAMES)
ROW_ID = st.integers(0, 7)
KINDS: list[st.SearchStrategy[Any]] = [st.integers(-5, 5), st.text("xé", max_size=2), st.booleans(), st.floats(-2, 2)]


def columns(draw: st.DrawFn, names: list[str], rows: int) -> dict[str, list[Any]]:
    """One kind of value for each column, nulls among them."""
    made = {}
    for name in names:
        values = st.none() | draw(st.sampled_from(KINDS))
        made[name] = draw(st.lists(values, min_size=rows, max_size=rows))
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Literal["agent", "rows"]]:
    """A body and the agent's rows, both as lists of dicts, and who selected."""
    selected: Literal["agent", "rows"] = "agent" if draw(st.booleans()) else "rows"
    ids = draw(st.lists(ROW_ID, max_size=6, unique=selected == "agent"))
    body_columns = columns(draw, draw(st.lists(NAME, unique=True, max_size=3)), len(ids))
    body = [{"_row_id": i, **{n: v[at] for n, v in body_columns.items()}} for at, i in enumerate(ids)]
    only_known = draw(st.booleans())
    known = st.sampled_from(ids) if only_known and ids else ROW_ID
    agent_ids = draw(st.lists(known, max_size=6, unique=True))
    agent_columns = columns(draw, draw(st.lists(NAME, unique=True, max_size=3)), len(agent_ids))
    agent: list[dict[str, Any]] = []
    for at, i in enumerate(agent_ids):
        kept = {n: v[at] for n, v in agent_columns.items() if draw(st.booleans())}
        agent.append({"_row_id": draw(st.sampled_from([i, float(i), str(i)])), **kept})
    return body, agent, selected


def model(body: list[dict[str, Any]], agent: list[dict[str, Any]], selected: str) -> list[dict[str, Any]] | None:
    """The written rule, row by row; None is an error."""
    mine = {int(row["_row_id"]): row for row in agent}
    if any(i not in [row["_row_id"] for row in body] for i in mine):
        return None
    if selected == "agent":
        body = [next(row for row in body if row["_row_id"] == i) for i in mine]
    added = list(dict.fromkeys(n for row in agent for n in row if n != "_row_id"))
    return [{**{n: mine.get(row["_row_id"], {}).get(n) for n in added}, **row} for row in body]


def table_of(rows: list[dict[str, Any]], names: list[str], cut: int) -> pa.Table:
    """The rows as a table of two chunks."""
    schema = pa.schema(
        [
            pa.field("_row_id", pa.int64(), nullable=False),
            *(pa.field(n, pa.array([row[n] for row in rows]).type) for n in names),
        ]
    )
    return pa.Table.from_batches(
        [pa.RecordBatch.from_pylist(part, schema=schema) for part in (rows[:cut], rows[cut:])], schema=schema
    )


@given(cases(), st.integers(0, 6))
def test_join_equals_the_model(case: Any, cut: int) -> None:
    body, agent, selected = case
    names = [n for n in body[0] if n != "_row_id"] if body else []
    table = table_of(body, names, cut)
    before = table.to_pylist()
    expected = model(body, agent, selected)
    try:
        joined = join(table, parse_abstract(json.dumps(agent)), selected=selected)
    except ArgumentError:
        assert expected is None
        return
    assert expected is not None
    assert [dict(row) for row in joined.to_pylist()] == expected
    added = list(dict.fromkeys(n for row in agent for n in row if n not in ("_row_id", *names)))
    assert joined.column_names == ["_row_id", *names, *added]
    assert joined.schema.field("_row_id") == table.schema.field("_row_id")
    assert table.to_pylist() == before


@given(st.lists(NAME, unique=True), st.dictionaries(NAME, st.sampled_from([*NAMES, "e", "_row_id"])))
def test_rename_equals_the_model(names: list[str], mapping: dict[str, str]) -> None:
    table = pa.table({"_row_id": [0], **{n: [n] for n in names}})
    target = [mapping.get(n, n) for n in names]
    legal = set(mapping) <= set(names) and len({"_row_id", *target}) == len(names) + 1
    try:
        renamed = rename(table, mapping)
    except S2SPError:
        assert not legal
        return
    assert legal
    assert renamed.column_names == ["_row_id", *target]
    assert [renamed.column(n)[0].as_py() for n in target] == names
