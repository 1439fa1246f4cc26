"""Checks of a table before anything reads it: its column names, and that its buffers are valid for their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as is_

from framewire.arrow.validate import validation_errors
from framewire.errors import ColumnNameError, UnsupportedValueError
from framewire.values.location import ValueLocation, name_of
from framewire.wire import ROW_ID

_MALFORMED: Final = "Rebuild the column: its producer wrote a value that the type does not allow."
_NOT_UTF8: Final = "Decode it with its own encoding, or use binary."
_VALUE_HINTS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (is_.is_time, "Times run from 00:00:00 to before 24:00:00."),
    (is_.is_date64, "A date64 is a midnight: cast the column to timestamp[ms]."),
    (is_.is_decimal, "Cast the column to text."),
    (is_.is_string, _NOT_UTF8),
    (is_.is_large_string, _NOT_UTF8),
    (is_.is_string_view, _NOT_UTF8),
)
"""Flat types whose single values may be at fault, so that the row can be named."""


def check_names(names: Sequence[Any]) -> None:
    """Column names must be text that every reader holds, each once, and not framewire's own.

    Raises:
        ColumnNameError: A name is not text, has NUL (C strings end there) or a lone surrogate, appears twice, or is
            ``_row_id``.
    """
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not isinstance(name, str):
            kind = name_of(type(name))
            hint = "Column names are text, for example df.columns = df.columns.map(str)."
            raise ColumnNameError(f"The name of column {position} is {kind}, not text: {name!r}.", hint=hint)
        if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
            raise ColumnNameError(
                f"The name of column {position} has NUL or a lone surrogate: {name!r}.", hint="Rename the column."
            )
        if name == ROW_ID:
            hint = "framewire numbers the published rows under this name; rename or drop the column."
            raise ColumnNameError(f"A column is already called {ROW_ID!r}.", hint=hint)
        if name in seen:
            raise ColumnNameError(f"Two columns are called {name!r}.", hint="Rename one of them.")
        seen.add(name)


def column_names(table: pa.Table) -> list[str]:
    """The names of a table's columns.

    Raises:
        ColumnNameError: A name is not UTF-8.
    """
    try:
        return [str(name) for name in table.schema.names]
    except UnicodeDecodeError:
        raise ColumnNameError("The name of a column is not UTF-8.", hint="Rename it where the table is made.") from None


def validate(table: pa.Table) -> None:
    """Arrow's full validation: 4 GB/s, and without it a malformed column kills the process that reads it.

    Raises:
        UnsupportedValueError: A column has invalid UTF-8, a time outside the day, a decimal of too many digits, or
            offsets or indices out of bounds; names the column, and the row where that is one value's fault.
    """
    places = [
        (chunk, ValueLocation(name).after(row))
        for name, column in zip(column_names(table), table.columns, strict=True)
        for chunk, row in _with_first_rows(column)
    ]
    for (chunk, where), fault in zip(places, validation_errors([chunk for chunk, _ in places]), strict=True):
        if fault is not None:
            if not isinstance(fault, (pa.ArrowException, UnicodeDecodeError)):
                raise fault
            raise _invalid(chunk, str(fault), where)


def _with_first_rows(column: pa.ChunkedArray) -> Iterator[tuple[pa.Array, int]]:
    row = 0
    for chunk in column.chunks:
        yield chunk, row
        row += len(chunk)


def _is_faulty(array: pa.Array) -> bool:
    return next(validation_errors([array])) is not None


def _invalid(chunk: pa.Array, fault: str, where: ValueLocation) -> UnsupportedValueError:
    """The error for a chunk. Arrow's own message is not passed on: it quotes the value."""
    kind = chunk.type
    hint = next((hint for test, hint in _VALUE_HINTS if test(kind)), "")
    if "UTF8" in fault and hint == _NOT_UTF8:
        return where.refuse(_first_invalid(chunk), str(kind), "text that is not UTF-8", hint)
    if hint and hint != _NOT_UTF8:
        return where.refuse(_first_invalid(chunk), str(kind), f"a value that {kind} does not allow", hint)
    message = f"Column {where.path!r} ({kind}) is malformed."
    return UnsupportedValueError(message, hint=_MALFORMED, details={"column": where.path, "kind": str(kind)})


def _first_invalid(chunk: pa.Array) -> int:
    """Row of the first value that fails, by halving; the whole chunk is known to fail."""
    start, stop = 0, len(chunk)
    while stop - start > 1:
        middle = (start + stop) // 2
        start, stop = (start, middle) if _is_faulty(chunk.slice(start, middle - start)) else (middle, stop)
    return start
