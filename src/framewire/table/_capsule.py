"""Arrow, Polars, duckdb and other exporters of the Arrow C stream interface, as a pa.Table.

Libraries are looked for in ``sys.modules``: an object of a library that was never imported does not exist.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import pyarrow as pa

from framewire.errors import PublishError, UnsupportedTypeError
from framewire.table._check import check_names

_POLARS_ONLY: Final[dict[str, str]] = {
    "Object": "Python objects have no form in Arrow; use .cast or .map_elements to make them text or structs.",
    "Int128": "Use .cast(pl.Decimal(38, 0)), or pl.Int64 where it fits.",
    "UInt128": "Use .cast(pl.Decimal(38, 0)), or pl.UInt64 where it fits.",
    "Unknown": "Give the column a type with .cast.",
}
"""Polars types without a form in Arrow. Exported anyway, Object columns are memory addresses."""
_DUCKDB_LOSSY: Final[dict[str, str]] = {
    "time with time zone": "duckdb exports it without its offset; cast it to TIME or VARCHAR in the query.",
    "uhugeint": "duckdb exports its upper half as negative numbers; cast it to DECIMAL(38, 0) or VARCHAR in the query.",
    "bit": "duckdb exports its internal bytes; cast it to VARCHAR in the query.",
}
_DUCKDB_NESTED: Final = frozenset({"struct", "list", "array", "map", "union"})


def is_polars(data: Any, *names: str) -> bool:
    """Whether ``data`` is an instance of one of Polars' classes ``names``."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(data, tuple(getattr(polars, name) for name in names))


def from_polars(frame: Any) -> pa.Table:
    """A Polars frame, its strings as views, its Enums and Categoricals as dictionaries.

    Raises:
        UnsupportedTypeError: A column, or a part of one, has a type without a form in Arrow.
    """
    check_names(frame.columns)
    for name, dtype in frame.schema.items():
        _check_polars(dtype, name)
    # Not pa.table(): it imports pandas where that is installed, to see whether this is one of its frames.
    with pa.RecordBatchReader.from_stream(frame) as reader:
        return reader.read_all()


def _check_polars(dtype: Any, path: str) -> None:
    name = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    if name in _POLARS_ONLY:
        raise UnsupportedTypeError.of_column(path, f"polars {name}", _POLARS_ONLY[name])
    for field in getattr(dtype, "fields", ()):
        _check_polars(field.dtype, f"{path}.{field.name}")
    for attribute in ("inner", "key", "value"):
        if (inner := getattr(dtype, attribute, None)) is not None and not callable(inner):
            _check_polars(inner, f"{path}[]")


def is_duckdb(data: Any) -> bool:
    """Whether ``data`` is a duckdb relation."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(data, duckdb.DuckDBPyRelation)


def from_duckdb(relation: Any) -> pa.Table:
    """Run a duckdb relation's query. Its own errors, as of a cast that fails, pass as they are.

    Raises:
        PublishError: The relation's connection is closed.
        UnsupportedTypeError: A column has a type that duckdb's own Arrow export alters.
    """
    duckdb = sys.modules["duckdb"]
    try:
        names = list(relation.columns)
        check_names(names)
        for name, dtype in zip(names, relation.types, strict=True):
            _check_duckdb(dtype, name)
        # Not through the C stream, where duckdb's errors would come out as pyarrow's.
        return relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
    except duckdb.ConnectionException as exc:
        raise PublishError(
            "The duckdb relation cannot be read: its connection is closed.",
            hint="Return relation.to_arrow_table(), or keep the connection open until the tool has returned.",
        ) from exc


def _check_duckdb(dtype: Any, path: str) -> None:
    if dtype.id in _DUCKDB_LOSSY:
        raise UnsupportedTypeError.of_column(path, f"duckdb {dtype}", _DUCKDB_LOSSY[dtype.id])
    if dtype.id in _DUCKDB_NESTED:
        for name, child in dtype.children:
            if hasattr(child, "id"):  # an array's size is among its children
                _check_duckdb(child, f"{path}.{name}" if dtype.id == "struct" else f"{path}[]")


def from_reader(reader: pa.RecordBatchReader) -> pa.Table:
    """The batches that a reader still holds; it is read once. Errors of the caller's own generator pass as they are.

    Raises:
        PublishError: Arrow cannot read the stream.
    """
    try:
        return reader.read_all()
    except pa.ArrowException as exc:
        raise PublishError(
            f"The record batch reader broke off: {type(exc).__name__}.",
            hint="The source of its batches failed; the cause is chained to this error.",
        ) from exc


def from_stream(data: Any) -> pa.Table:
    """Anything with ``__arrow_c_stream__``, read once.

    Raises:
        PublishError: The stream does not hold record batches, or breaks off.
    """
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, OSError) as exc:
        kind = f"{type(data).__module__}.{type(data).__qualname__}"
        raise PublishError(
            f"The Arrow stream of a {kind} cannot be read as a table: {type(exc).__name__}.",
            hint="A table's stream has a struct schema without null rows; the cause is chained to this error.",
        ) from exc
