"""table -> abstract + body: which columns the agent sees, and the row id that ties both together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from framewire import wire
from framewire.arrow.take import int64_array
from framewire.errors import ArgumentError, ColumnNameError, UnknownColumnError


@dataclass(frozen=True)
class Split:
    """Two lists of column names over one table, neither holding ``_row_id``.

    Attributes:
        abstract: Columns that the agent sees, in the order it asked for.
        body: The other columns, in table order.
    """

    abstract: tuple[str, ...]
    body: tuple[str, ...]


def add_row_id(table: pa.Table) -> pa.Table:
    """Put ``_row_id`` (int64, not null, 0..n-1) in front of ``table``; other columns are shared, not copied.

    Raises:
        ColumnNameError: The table has a column of that name already.
    """
    if wire.ROW_ID in table.column_names:
        raise ColumnNameError(
            f"The table already has a column {wire.ROW_ID!r}, the name of framewire's row id.",
            hint="Rename or drop that column before returning the table.",
        )
    ids = int64_array(np.arange(table.num_rows, dtype=np.int64))
    field = pa.field(wire.ROW_ID, pa.int64(), nullable=False)
    return pa.Table.from_arrays([ids, *table.columns], schema=pa.schema([field, *table.schema]))


def parse_domains(domains: str | Sequence[Any]) -> list[str]:
    """Read ``abstract_domains``: names separated by commas, a JSON array as text, or a list.

    Returns:
        Names in the order given, each once; empty when nothing was asked for.

    Raises:
        ArgumentError: It is a JSON array that does not parse, or an item is not text.
    """
    items: Sequence[Any]
    if isinstance(domains, str):
        text = domains.strip()
        if text.startswith("["):
            try:
                items = json.loads(text)
            except ValueError:
                raise ArgumentError("abstract_domains is not a valid JSON array.", hint=_HINT) from None
        else:
            items = [part.strip() for part in text.split(",") if part.strip()]
    else:
        items = domains
    for item in items:
        if not isinstance(item, str):
            raise ArgumentError(f"abstract_domains holds a {type(item).__name__}.", hint=_HINT)
    return list(dict.fromkeys(items))


_HINT = 'Write the column names as "name,other" or ["name", "other"].'


def split(column_names: Sequence[str], domains: Sequence[str]) -> Split:
    """Divide a table's columns into abstract and body.

    Args:
        column_names: The table's columns, without ``_row_id``.
        domains: Names that the agent asked for; ``_row_id`` is legal and adds nothing.

    Raises:
        UnknownColumnError: A name is not a column; the columns are listed.
    """
    known = set(column_names)
    for name in domains:
        if name not in known and name != wire.ROW_ID:
            raise UnknownColumnError.build(name, column_names)
    abstract = tuple(name for name in domains if name != wire.ROW_ID)
    seen = set(abstract)
    return Split(abstract, tuple(name for name in column_names if name not in seen))
