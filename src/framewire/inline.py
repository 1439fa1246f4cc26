"""Inline bodies: ``body_data`` of sync mode as a table with ``_row_id``."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from framewire import wire
from framewire.arrow import read
from framewire.arrow.take import int64_array, take_table
from framewire.errors import ArgumentError, PublishError, RowOutOfRangeError, SelectionError, UnknownColumnError
from framewire.selection import RowSpec, parse_row_ids
from framewire.settings import Settings
from framewire.values.infer import infer_rows
from framewire.values.json import decode_rows
from framewire.values.type_text import parse_type

_HINT: Final = (
    'Pass the "body" array of the resource tool\'s sync reply, the whole reply, or an Arrow stream as '
    f"{wire.DATA_URL_PREFIX}..."
)
ROW_ID_FIELD: Final = pa.field(wire.ROW_ID, pa.int64(), nullable=False)


@dataclass(frozen=True)
class InlineBody:
    """An inline body, decoded.

    Attributes:
        table: ``_row_id`` first, each id once, rows as they came.
        declared: Types of the resource's columns that are not in the body, where the reply told them.
    """

    table: pa.Table
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)


def parse_body_data(body_data: str | Sequence[Any] | Mapping[str, Any], settings: Settings) -> InlineBody:
    """Read ``body_data``: a JSON array of rows, a whole sync reply, or an Arrow stream as a ``data:`` URL.

    Raises:
        ArgumentError: None of these, or rows without a whole ``_row_id``.
        BadBodyError, TooLargeError: The Arrow stream is damaged or above a limit.
    """
    value: Any = body_data
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("data:"):
            return InlineBody(_arrow(text, settings))
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise ArgumentError("body_data is not valid JSON.", hint=_HINT) from None
    schema: Mapping[str, Any] = {}
    if isinstance(value, Mapping):
        schema, value = value.get("schema", {}), _whole_rows(value)
    if not _are_rows(value):
        raise ArgumentError("body_data is not an array of rows.", hint=_HINT)
    if not isinstance(schema, Mapping):
        raise ArgumentError("The schema of body_data is not an object.", hint=_HINT)
    types = {str(name): parse_type(str(text)) for name, text in schema.items() if name != wire.ROW_ID}
    table = table_of_rows(value, types)
    present = set(table.column_names)
    return InlineBody(table, {name: dtype for name, dtype in types.items() if name not in present})


def _whole_rows(reply: Mapping[str, Any]) -> Any:
    """The rows of a whole reply: the columns that its body leaves out stand in its abstract.

    Raises:
        ArgumentError: It is an async reply, or its abstract does not show every row.
    """
    body: Any = reply.get("body")
    abstract: Any = reply.get("abstract", [])
    if body is None and reply.get("resource_url"):
        raise ArgumentError("body_data is an async reply.", hint="Pass its resource_url as resource_url instead.")
    if not (_are_rows(body) and _are_rows(abstract)):
        return body
    shown = {str(row.get(wire.ROW_ID)): row for row in abstract}
    held = set(chain.from_iterable(body))
    if not set(chain.from_iterable(abstract)) - held:
        return body
    if any(str(row.get(wire.ROW_ID)) not in shown for row in body):
        raise ArgumentError(
            "The abstract of body_data does not show every row, and its body leaves out the columns of the abstract.",
            hint="Call the resource tool again with mode='async', and pass its resource_url.",
        )
    order = {name: None for name in reply.get("columns", []) if isinstance(name, str)}
    merged = [{**shown[str(row.get(wire.ROW_ID))], **row} for row in body]
    return [
        {wire.ROW_ID: row[wire.ROW_ID], **{name: row[name] for name in order if name in row}, **row} for row in merged
    ]


def _are_rows(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(row, Mapping) for row in value)


def _arrow(text: str, settings: Settings) -> pa.Table:
    if not text.startswith(wire.DATA_URL_PREFIX):
        raise ArgumentError("body_data is a data: URL of another type.", hint=_HINT)
    try:
        raw = base64.b64decode(text[len(wire.DATA_URL_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        raise ArgumentError("body_data is not valid base64.", hint=_HINT) from None
    table = read.decode(
        pa.py_buffer(raw), rows=None, max_rows=settings.max_rows, max_bytes=settings.max_body_bytes, validate=True
    )
    names = table.column_names
    if not names or names[0] != wire.ROW_ID or len(set(names)) < len(names):
        raise ArgumentError(f"The first column of body_data is not {wire.ROW_ID}, or a name appears twice.", hint=_HINT)
    return table.set_column(0, ROW_ID_FIELD, _unique_ids(table.column(0), "body_data"))


def _unique_ids(values: Any, source: str) -> pa.Array:
    try:
        ids = parse_row_ids(values).expand()
    except SelectionError as exc:
        raise ArgumentError(f"{wire.ROW_ID} of {source}: {exc.message}", hint=exc.hint) from None
    if len(set(ids.tolist())) < len(ids):
        raise ArgumentError(f"The same {wire.ROW_ID} appears twice in {source}.", hint="Pass each row once.")
    return int64_array(ids)


def table_of_rows(rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Convert JSON rows that carry ``_row_id`` to a table, in their order.

    Args:
        rows: Objects; keys may be missing (null). ``_row_id`` as a whole number, also in text.
        types: Types of columns that are known; the others follow the rule for ``list[dict]``.

    Returns:
        ``_row_id`` (int64, not null, each once), then every key in first-seen order.

    Raises:
        ArgumentError: A ``_row_id`` is missing, malformed or repeated, or a column has no one exact type.
    """
    missing = next((i for i, row in enumerate(rows) if wire.ROW_ID not in row), None)
    if missing is not None:
        raise ArgumentError(
            f"Row {missing} of the body has no {wire.ROW_ID}.",
            hint="Call the resource tool again with abstract_domains and mode='sync', and pass its whole reply.",
        )
    ids = _unique_ids([row[wire.ROW_ID] for row in rows], "the body")
    names = [name for name in dict.fromkeys(chain.from_iterable(rows)) if name != wire.ROW_ID]
    columns = _columns_of_rows(rows, names, types or {})
    fields = [ROW_ID_FIELD, *(pa.field(name, columns[name].type) for name in names)]
    return pa.Table.from_arrays([ids, *(columns[name] for name in names)], schema=pa.schema(fields))


def _columns_of_rows(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], types: Mapping[str, pa.DataType]
) -> dict[str, pa.ChunkedArray]:
    known = pa.schema([pa.field(name, types[name]) for name in types if name in names])
    columns: dict[str, pa.ChunkedArray] = {}
    if len(known):
        decoded = decode_rows([{name: row.get(name) for name in known.names} for row in rows], known)
        columns.update(zip(known.names, decoded.columns, strict=True))
    skip = {wire.ROW_ID, *known.names}
    try:
        inferred = infer_rows([{name: value for name, value in row.items() if name not in skip} for row in rows])
    except PublishError as exc:
        raise ArgumentError(f"The rows of the body have no common type: {exc.message}", hint=exc.hint) from exc
    columns.update(zip(inferred.column_names, inferred.columns, strict=True))
    return columns


def pick(table: pa.Table, wanted: RowSpec | None, columns: Sequence[str] | None = None) -> pa.Table:
    """Select rows and columns of a table whose rows carry their ids, in the wanted order, duplicates kept.

    Args:
        table: ``_row_id`` first, each id once, in any order.
        wanted: Ids; an open range runs to the largest id there is. None keeps the rows as they are.
        columns: Names; None keeps all.

    Raises:
        RowOutOfRangeError: A wanted id is not in the table.
        UnknownColumnError: A wanted column is not in the table.
    """
    if columns is not None:
        for name in columns:
            # Without rows, a peer that sends JSON cannot tell which columns there are.
            if name not in table.column_names and table.num_rows:
                raise UnknownColumnError.build(name, table.column_names)
        table = table.select([wire.ROW_ID, *(name for name in columns if name in table.column_names)])
    if wanted is None:
        return table
    index = {row_id: position for position, row_id in enumerate(table.column(0).to_pylist())}
    lasts = wanted.lasts.copy()
    lasts[lasts == -1] = max(index, default=-1)
    positions: list[int] = []
    for start, last in zip(wanted.starts.tolist(), lasts.tolist(), strict=True):
        for row_id in range(start, last + 1):
            if row_id not in index:
                raise RowOutOfRangeError(
                    f"Row {row_id} does not exist.",
                    hint="Choose ids from the abstract's _row_id.",
                    details={"row": row_id},
                )
            positions.append(index[row_id])
    return take_table(table, pa.array(positions, pa.int64()))
