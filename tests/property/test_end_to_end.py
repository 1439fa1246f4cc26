"""What a tool returns is what arrives: every route in, over the real store and the real wire, to every form out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import duckdb
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from framewire import wire
from framewire.errors import UnsupportedValueError
from framewire.frame import FORMS, Form, to_form
from framewire.handle import Handle
from framewire.plane import DataPlane
from framewire.testing import WIRE_KINDS, check_tables, kinds_of
from framewire.values.json import decode_rows
from framewire.values.type_text import parse_type
from tests.property import model
from tests.property.routes import DUCKDB_KINDS, ROUTES, as_arrow, look_at, python_rows, through_duckdb
from tests.property.wire_client import ARROW, JSON, Wire


@pytest.fixture(scope="module")
def line() -> Iterator[Wire]:
    with DataPlane() as plane, Wire(plane) as line:
        yield line


def _received(table: pa.Table) -> dict[str, list[Any]]:
    """The model of what arrived, without the ids, which are checked."""
    values = model.of_table(table)
    assert values.pop(wire.ROW_ID) == list(range(table.num_rows))
    return values


def _check_forms(
    body: pa.Table, expected: dict[str, list[Any]], forms: Sequence[Form], used: Counter[str], route: str
) -> None:
    for form in forms:
        if form is Form.ROWS:
            _check_rows_form(body, expected)
        else:
            assert _received(as_arrow(to_form(body, form))) == expected, form
        used[f"{route} to {form.value}"] += 1


def _check_rows_form(body: pa.Table, expected: dict[str, list[Any]]) -> None:
    holds = model.python_holds(body)
    rows: list[dict[str, Any]] | None = None
    with suppress(UnsupportedValueError):
        rows = to_form(body, Form.ROWS)
    assert holds in (rows is not None, None)
    if rows is None:
        return
    values = model.of_rows(rows, body.schema)
    assert values.pop(wire.ROW_ID) == list(range(body.num_rows))
    assert values == expected


def test_every_route_to_every_form(line: Wire) -> None:
    """And publishing changes none of them."""
    used: Counter[str] = Counter()
    duckdb_kinds: set[str] = set()
    row_kinds: set[str] = set()

    def publish(data: Any, expected: dict[str, list[Any]], forms: Sequence[Form], route: str) -> None:
        before = look_at(data)
        handle = line.plane.publish(data)
        assert look_at(data) == before, route
        body = line.fetch(handle)
        line.plane.revoke(handle)
        assert _received(body) == expected, route
        _check_forms(body, expected, forms, used, route)

    def check(drawn: pa.Table, third: int) -> None:
        forms = FORMS[third::3]  # two of six for each table: all of them for every route, over the examples
        table = _published_columns(drawn)
        if table.num_columns < drawn.num_columns:
            with pytest.raises(UnsupportedValueError, match="too far for (milliseconds|date32)"):
                line.plane.publish(drawn)
        expected = model.of_table(table)
        for route, make in ROUTES.items() if table.num_columns else ():
            data = make(table)
            publish(data, model.of_table(pa.table(data)) if route == "pa.RecordBatch" else expected, forms, route)
        relation = through_duckdb(table, connection)
        if relation is not None:
            publish(relation, {name: expected[name] for name in relation.columns}, forms, "duckdb")
            duckdb_kinds.update(*(kinds_of(table.schema.field(name).type) for name in relation.columns))
        rows = table.select([name for name in table.column_names if _is_written_in_python(table.select([name]))])
        if rows.num_columns and rows.num_rows:
            publish(python_rows(rows), model.without_maps(model.of_table(rows)), forms, "list[dict]")
            row_kinds.update(*map(kinds_of, rows.schema.types))

    with duckdb.connect() as connection:
        check_tables(check, st.integers(0, 2), max_rows=4, max_columns=2)
        # Columns that a route does not take were left out: what chance left out with them is drawn on purpose.
        few = settings(max_examples=20)
        for _ in range(10):  # a drawn column may be of the other kind, or hold a value that a route does not take
            for kind in sorted((DUCKDB_KINDS - duckdb_kinds) | (WIRE_KINDS - row_kinds)):
                check_tables(check, st.integers(0, 2), kinds={kind, "string"}, settings=few, max_columns=1, max_depth=1)
    assert set(used) == {f"{route} to {form.value}" for route in [*ROUTES, "duckdb", "list[dict]"] for form in FORMS}
    assert duckdb_kinds == DUCKDB_KINDS
    assert row_kinds == WIRE_KINDS


def _published_columns(table: pa.Table) -> pa.Table:
    """Without the columns that publishing refuses."""
    return table.select([name for name in table.column_names if not model.is_refused(table.select([name]))])


def _is_written_in_python(column: pa.Table) -> bool:
    return model.python_holds(column) is True and not model.python_overflows(column)


def test_every_representation_of_an_answer(line: Wire) -> None:
    """Views, plain text and the reference's JSON hold the same."""

    def check(drawn: pa.Table) -> None:
        table = _published_columns(drawn)
        expected = model.of_table(table)
        handle = line.plane.publish(table)
        views = line.fetch(handle)
        plain = pa.ipc.open_stream(line.ask(handle, ARROW)).read_all()
        plain.validate(full=True)
        answer = _ask_json(line, handle, {}, plain)
        line.plane.revoke(handle)
        assert not any("view" in kind for field in plain.schema for kind in kinds_of(field.type))
        assert _received(views) == _received(plain) == expected
        if answer is None:
            return
        assert answer["total_rows"] == table.num_rows
        if table.num_rows:
            schema = pa.schema([(name, parse_type(text)) for name, text in handle.schema.items()])
            assert _received(decode_rows(answer["body"], schema)) == expected

    check_tables(check)


def _ask_json(line: Wire, handle: Handle, payload: dict[str, Any], shown: pa.Table) -> Any:
    """The reference's JSON; None where it is refused, as it must be for the years that it does not have."""
    if model.json_holds(shown):
        return json.loads(line.ask(handle, JSON, payload), parse_constant=_refuse)
    error = json.loads(line.ask(handle, JSON, payload, status=406))
    assert error["code"] == "unsupported_value"
    assert not model.json_holds(shown.slice(error["row"], 1))
    return None


def _refuse(text: str) -> NoReturn:
    raise AssertionError(f"{text} is not JSON")


class Chosen(NamedTuple):
    """A selection as a client writes it, and the rows that it means."""

    row_ids: list[Any]
    rows: list[int]


def _choose(data: st.DataObject, total: int) -> Chosen:
    """Ids in any order, as integers, whole floats and text, and ranges, the last one open."""
    row_ids: list[Any] = []
    rows: list[int] = []
    for _ in range(data.draw(st.integers(0, 4))):
        first = data.draw(st.integers(0, total - 1)) if total else 0
        last = data.draw(st.integers(first, total - 1)) if total else 0
        shapes = ["int", "float", "text", "range", "open"] if total else ["open"]
        shape = data.draw(st.sampled_from(shapes))
        meant = {"range": range(first, last + 1), "open": range(first, total)}.get(shape, range(first, first + 1))
        rows += meant
        row_ids.append({"int": first, "float": float(first), "text": str(first), "open": f"{first}-"}.get(
            shape, f"{first}-{last}"
        ))  # fmt: skip
    return Chosen(row_ids, rows)


def test_a_selection_is_that_of_lists(line: Wire) -> None:
    """Rows and columns in the order asked for, duplicates kept, in all three representations."""

    def check(drawn: pa.Table, data: st.DataObject) -> None:
        table = _published_columns(drawn)
        handle = line.plane.publish(table)
        chosen = _choose(data, table.num_rows)
        names = data.draw(st.none() | st.lists(st.sampled_from(table.column_names), unique=True)
                          if table.num_columns else st.none())  # fmt: skip
        whole = model.of_table(table)
        expected = {name: [whole[name][row] for row in chosen.rows] for name in names or table.column_names}
        if names == []:
            expected = {}
        payload = {"row_ids": chosen.row_ids} | ({} if names is None else {"columns": names})
        views = line.fetch(handle, chosen.row_ids, names)
        plain = pa.ipc.open_stream(line.ask(handle, ARROW, payload)).read_all()
        answer = _ask_json(line, handle, payload, plain)
        line.plane.revoke(handle)
        for body in (views, plain):
            assert body.column_names == [wire.ROW_ID, *expected]
            values = model.of_table(body)
            assert values.pop(wire.ROW_ID) == chosen.rows
            assert values == expected
        if answer is None:
            return
        assert [row[wire.ROW_ID] for row in answer["body"]] == chosen.rows
        if chosen.rows:
            schema = pa.schema([(name, parse_type(handle.schema[name])) for name in [wire.ROW_ID, *expected]])
            values = model.of_table(decode_rows(answer["body"], schema))
            assert {name: values[name] for name in expected} == expected

    check_tables(check, st.data())
