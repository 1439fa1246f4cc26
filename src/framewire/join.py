"""Joins the fetched body with the columns that the agent added, on ``_row_id``, and renames the columns of both.

``abstract_data`` is written by a model, so every departure from the rule is an error that says which row and what to
do: never a shorter table, a guessed id or a value that is dropped in silence.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framewire.arrow.take import take_rows
from framewire.errors import ArgumentError, UnknownColumnError, UnsupportedValueError
from framewire.values import infer
from framewire.values import json as json_values
from framewire.wire import MAX_SAFE_INTEGER, ROW_ID

__all__ = ["AgentRows", "join", "parse_abstract", "parse_mapping", "rename"]

_ABSTRACT: Final = "abstract"
_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_ID_HINT: Final = f"Copy {ROW_ID} from the resource tool's reply: whole numbers from 0 up."
_ROWS_HINT: Final = f'Pass a JSON array of objects such as [{{"{ROW_ID}": 0}}, {{"{ROW_ID}": 5}}].'
_MAPPING_HINT: Final = 'Pass a JSON object from old name to new name, such as {"dep_delay": "delay"}.'
_UNKNOWN: Final = {
    "rows": ("which row_ids or where did not select", "Add it to the selection, or leave that row out."),
    "agent": ("which the body does not hold", "Pass rows of this table only: copy their ids from the tool's reply."),
}


@dataclass(frozen=True)
class AgentRows:
    """The rows of ``abstract_data``, column by column.

    Attributes:
        ids: The rows' ``_row_id`` values, unique, in the order in which the agent gave them.
        columns: Every other key in first-seen order, each a list as long as ``ids``; a row without the key has None.
    """

    ids: list[int]
    columns: dict[str, list[Any]]


def parse_abstract(abstract_data: str | Sequence[Any] | Mapping[str, Any] | None) -> AgentRows | None:
    """Read ``abstract_data``: JSON text, or the list that an SDK already parsed from it.

    The whole reply of a resource tool (a JSON object with the key ``abstract``) stands for its ``abstract``.
    Row ids may be integers, whole floats (``3.0``) or digits in text (``"3"``).

    Returns:
        The rows, or None when nothing was given (``""``). ``"[]"`` differs: it selects no rows.

    Raises:
        ArgumentError: Not JSON, not an array of objects, or a ``_row_id`` that is missing, malformed or repeated; the
            message names the position (from 0) and the id.
    """
    if abstract_data is None or (isinstance(abstract_data, str) and not abstract_data.strip()):
        return None
    rows = _rows_in(abstract_data)
    seen: dict[int, int] = {}
    columns: dict[str, list[Any]] = {}
    for position, row in enumerate(rows):
        row_id = _row_id_of(row, position)
        if (first := seen.setdefault(row_id, position)) != position:
            raise ArgumentError(
                f"abstract_data holds {ROW_ID} {row_id} twice, at positions {first} and {position}.",
                hint="Give each row once. To repeat a row, give its id twice in row_ids.",
            )
        for name in row:
            if name not in columns and name != ROW_ID:
                columns[_column_name(name, position)] = [None] * position
        for name, values in columns.items():
            values.append(row.get(name))
    return AgentRows(list(seen), columns)


def _rows_in(abstract_data: Any) -> Sequence[Any]:
    is_text = isinstance(abstract_data, str)
    rows = _loads(abstract_data, "abstract_data", _ROWS_HINT) if is_text else abstract_data
    if isinstance(rows, Mapping) and _ABSTRACT in rows:
        rows = rows[_ABSTRACT]
    if not isinstance(rows, Sequence) or isinstance(rows, (str, bytes, bytearray)):
        raise ArgumentError(f"abstract_data is {_kind(rows)}, not an array of rows.", hint=_ROWS_HINT)
    return rows


def join(
    body: pa.Table,
    agent: AgentRows | None,
    *,
    selected: Literal["agent", "rows"],
    declared: Mapping[str, pa.DataType] | None = None,
) -> pa.Table:
    """Left-join ``body`` with the columns that the agent added.

    Args:
        body: n rows, first column ``_row_id`` (int64, not null). Under ``rows`` its order and repeated rows are kept.
        agent: What the agent passed; None adds nothing.
        selected: ``rows`` when ``row_ids`` or ``where`` chose the rows: they are kept as they are, and a row that the
            agent did not mention has null in the agent's columns. ``agent`` when the agent's ids choose: the result has
            exactly these rows in this order (no copy when the body already has them so).
        declared: Types of columns that are absent from the body (inline bodies): the agent's values are cast to them.

    Returns:
        The body's columns, untouched, then the agent's added columns in first-seen order. A key that also exists on the
        body is ignored in favour of the body's exact value. Nothing added: ``body`` itself.

    Raises:
        ArgumentError: An id that is not in the body (the message names it), a body that repeats an id under ``agent``,
            or an added column whose values have no common exact type.
    """
    if agent is None:
        return body
    ids = pa.array(agent.ids, pa.int64())
    positions = _positions(body.column(ROW_ID), ids, selected)
    if selected == "agent" and positions is not None:
        body, positions = _rows_of(body, ids), None
    present = set(body.column_names)
    added = {name: values for name, values in agent.columns.items() if name not in present}
    if not added:
        return body
    columns = {name: _added_column(name, values, (declared or {}).get(name)) for name, values in added.items()}
    if positions is not None:
        columns = {name: _take(column, positions) for name, column in columns.items()}
    fields = [*body.schema, *(pa.field(name, column.type) for name, column in columns.items())]
    schema = pa.schema(fields, metadata=body.schema.metadata)
    return pa.Table.from_arrays([*body.columns, *columns.values()], schema=schema)


def parse_mapping(mapping: str | Mapping[str, str] | None) -> dict[str, str]:
    """Read ``column_mapping``: a JSON object (as text, or already parsed) from old column name to new; ``""`` is empty.

    Raises:
        ArgumentError: Not a JSON object of text to text; the message names the entry.
    """
    value: Any = mapping
    if isinstance(value, str):
        value = _loads(value, "column_mapping", _MAPPING_HINT) if value.strip() else {}
    if value is None and mapping is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"column_mapping is {_kind(value)}, not an object.", hint=_MAPPING_HINT)
    for old, new in value.items():
        if not isinstance(old, str) or not isinstance(new, str) or not new or not infer.is_unicode(new):
            raise ArgumentError(f"column_mapping gives {old!r} {_kind(new)} instead of a name.", hint=_MAPPING_HINT)
    return dict(value)


def rename(table: pa.Table, mapping: Mapping[str, str]) -> pa.Table:
    """Rename columns simultaneously: ``{"a": "b", "b": "a"}`` swaps two. No data is copied.

    Raises:
        UnknownColumnError: The mapping names a column that the table does not have.
        ArgumentError: Two columns would get one name, or ``_row_id`` would be renamed or become a target.
    """
    if not mapping:
        return table
    return table.rename_columns(new_names(table.column_names, mapping))


def new_names(names: Sequence[str], mapping: Mapping[str, str]) -> list[str]:
    """Return the new name of each column, by the rule and with the errors of :func:`rename`."""
    available = set(names)
    for old, new in mapping.items():
        if old not in available:
            raise UnknownColumnError.build(old, names)
        if (old == ROW_ID) != (new == ROW_ID):
            raise ArgumentError(
                f"column_mapping renames {old!r} to {new!r}.",
                hint=f"{ROW_ID} is the rows' identity and keeps its name.",
            )
    renamed = [mapping.get(name, name) for name in names]
    taken: dict[str, str] = {}
    for old, new in zip(names, renamed, strict=True):
        if (other := taken.setdefault(new, old)) != old:
            raise ArgumentError(
                f"column_mapping would call both {other!r} and {old!r} {new!r}.",
                hint="Give each column a name of its own.",
            )
    return renamed


# --- ids --------------------------------------------------------------------------------------------------------------


def _row_id_of(row: Any, position: int) -> int:
    """Return the row's id as an int: a whole number, a whole float, or digits in text."""
    if not isinstance(row, Mapping):
        raise ArgumentError(f"Row {position} of abstract_data is {_kind(row)}, not an object.", hint=_ROWS_HINT)
    if ROW_ID not in row:
        raise ArgumentError(f"Row {position} of abstract_data has no {ROW_ID}.", hint=_ID_HINT)
    value = row[ROW_ID]
    number: int | None = None
    if isinstance(value, str):
        text = value.strip()
        number = int(text) if _DIGITS.fullmatch(text) else None
    elif isinstance(value, float):
        # Above 2^53 a float no longer says which whole number was meant.
        number = int(value) if math.isfinite(value) and value == int(value) and value <= MAX_SAFE_INTEGER else None
    elif not isinstance(value, bool):
        try:
            number = operator.index(value)
        except TypeError:
            number = None
    if number is None or not 0 <= number < 1 << 63:
        shown = json.dumps(value, default=lambda other: type(other).__name__)
        raise ArgumentError(f"Row {position} of abstract_data has the {ROW_ID} {shown:.100}.", hint=_ID_HINT)
    return number


def _column_name(name: Any, position: int) -> str:
    if not isinstance(name, str) or not name or not infer.is_unicode(name):
        raise ArgumentError(
            f"Row {position} of abstract_data has a key that is not a column name ({_kind(name)}).",
            hint="Name every column that you add with ordinary text.",
        )
    return name


def _positions(body_ids: pa.ChunkedArray, ids: pa.Array, selected: Literal["agent", "rows"]) -> pa.Array | None:
    """Return each body row's position among the agent's rows, or null; None where both are the same rows in order.

    The hash table is built from the agent's ids, which are few; the body is read once.
    """
    if len(body_ids) == len(ids) and body_ids.equals(pa.chunked_array([ids])):
        return None  # the common case: the body was fetched by these ids
    positions = pc.index_in(body_ids, value_set=ids).combine_chunks()
    found = positions.unique().drop_null()
    if len(found) < len(ids):
        missing = int(np.setdiff1d(np.arange(len(ids)), found.to_numpy())[0])
        reason, hint = _UNKNOWN[selected]
        raise ArgumentError(f"abstract_data holds {ROW_ID} {ids[missing].as_py()}, {reason}.", hint=hint)
    return positions


def _rows_of(body: pa.Table, ids: pa.Array) -> pa.Table:
    """Return the body's rows with these ids, in the order of ``ids``. All ids are known to be in the body."""
    body_ids = body.column(ROW_ID)
    if (distinct := pc.count_distinct(body_ids).as_py()) != len(body_ids):
        raise ArgumentError(
            f"The body repeats a {ROW_ID}: {len(body_ids)} rows have {distinct} ids.",
            hint="Pass each row of the body once.",
        )
    positions = pc.index_in(ids, value_set=body_ids)
    return pa.Table.from_arrays([_take(column, positions) for column in body.columns], schema=body.schema)


# --- columns ----------------------------------------------------------------------------------------------------------


def _added_column(name: str, values: list[Any], declared: pa.DataType | None) -> Any:
    """Convert one of the agent's columns to the declared type, or to the type that all its values have."""
    if declared is not None:
        return json_values.decode_column(values, declared, name=name)
    try:
        return infer.infer_column(values, name)
    except UnsupportedValueError as exc:
        raise ArgumentError(f"abstract_data: {exc.message}", hint=exc.hint, details=exc.details) from None


def _take(column: Any, positions: Any) -> Any:
    """Take the rows at ``positions`` (null gives a row of nulls) of any column, in one chunk."""
    if isinstance(column, pa.ChunkedArray):
        # Only inline bodies and the agent's own columns get here: both fit in a tool call.
        column = column.combine_chunks()
    return take_rows(column, positions)


# --- JSON -------------------------------------------------------------------------------------------------------------


def _loads(text: str, argument: str, hint: str) -> Any:
    """Parse JSON, refusing objects that repeat a key (the standard library keeps the last one in silence)."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            names = [name for name, _ in items]
            repeated = next(name for name in names if names.count(name) > 1)
            raise ArgumentError(f"{argument} holds an object with two keys {repeated!r}.", hint="Give each key once.")
        return found

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as exc:
        where = f"{exc.msg} at character {exc.pos} of {len(text)}"
    except RecursionError:
        where = "it is nested too deeply"
    except ArgumentError:
        raise
    except ValueError:
        where = "a number has too many digits"
    raise ArgumentError(f"{argument} is not JSON: {where}.", hint=hint)


def _kind(value: Any) -> str:
    """Name a value's kind in JSON's terms, without showing the value."""
    if value is None:
        return "null"
    for types, kind in (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "empty text" if value == "" else "text"),
        (Mapping, "an object"),
        (Sequence, "an array"),
    ):
        if isinstance(value, types):
            return kind
    return f"of type {type(value).__name__}"
