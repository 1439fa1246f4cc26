"""The one JSON form of values, and its exact inverse.

Used wherever a value crosses as JSON: abstracts, plain replies, inline bodies, and answers to clients that do not read
Arrow. ``decode_rows(encode_rows(table), table.schema)`` has the same values and types for every type that a table may
have and every value but dates and timestamps outside the years 1 to 9999, which are refused; only how a dictionary
orders its values is not in the JSON. The table of forms is at ``encode_column``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from framewire.errors import ArgumentError
from framewire.values.json._decode import decode_array
from framewire.values.json._encode import encode_column, encode_rows, non_finite_text
from framewire.values.location import ValueLocation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from framewire.typing import JSONValue

__all__ = ["decode_column", "decode_rows", "dumps", "encode_column", "encode_rows", "non_finite_text"]


def decode_column(values: Sequence[Any], type: pa.DataType, *, name: str, nullable: bool = True) -> pa.Array:
    """Convert a column's JSON form to Arrow.

    Beyond what ``encode_column`` writes it accepts variants that agents produce: integers as text or as whole floats, floats
    and decimals as integers where that is exact, any time zone offset where a zone is expected.

    Args:
        values: JSON values, one for each row.
        type: The column's type.
        name: The column's name, for errors.
        nullable: Whether ``null`` is a value of this column.

    Returns:
        An array of exactly ``type``, ``len(values)`` rows.

    Raises:
        ArgumentError: A value does not fit; the message names column, row (from 0) and kind of value.
        UnsupportedTypeError: The type has no JSON form.
    """
    return decode_array(values, type, ValueLocation(name), nullable=nullable)


def decode_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Convert rows in JSON form to a table; a missing key is null, as in the reference's rows.

    Raises:
        ArgumentError: A row is not an object, has a key that is not a column, or a value that does not fit.
        UnsupportedTypeError: A type in the schema has no JSON form.
    """
    names = set(schema.names)
    for position, row in enumerate(rows):
        if not hasattr(row, "keys"):
            raise ArgumentError(
                f"Row {position} is not an object.", hint="Each row is an object of column names to values."
            )
        if not names.issuperset(row):
            extra = next(key for key in row if key not in names)
            raise ArgumentError(
                f"Row {position} has a key {extra!r} that is not a column.",
                hint=f"The columns are: {', '.join(schema.names)}.",
            )
    if len(schema) == 0:
        return pa.table({"": pa.nulls(len(rows))}).select([])
    columns = [
        decode_column([row.get(field.name) for row in rows], field.type, name=field.name, nullable=field.nullable)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def dumps(value: JSONValue) -> str:
    """Write compact JSON text.

    Raises:
        ValueError: A NaN or infinity that is not text yet, which is a bug of the caller's.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
