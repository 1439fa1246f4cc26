"""Location of a value (column path and row), for errors that name it without showing it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from framewire.errors import UnsupportedValueError

MAX_NESTING: Final = 60
"""Deepest nesting of a column: Arrow's IPC reader stops at 64 levels, and a dict that holds itself never ends."""


def name_of(kind: type) -> str:
    """A type as its author would write it: ``int``, ``decimal.Decimal``, ``numpy.int32``."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True)
class ValueLocation:
    """A column, or a part of one, and the mapping from its positions to the table's rows.

    Attributes:
        path: The column's name, then ``.field`` for a struct's field, ``[]`` for a list's items, and so on.
        parent_row: From a position in this part to the row of the table; None where they are the same.
        depth: Levels of nesting above this part.
    """

    path: str
    parent_row: Callable[[int], int] | None = None
    depth: int = 0

    def row(self, position: int) -> int:
        """Return the table's row that holds ``position``."""
        return position if self.parent_row is None else self.parent_row(position)

    def field(self, name: str) -> ValueLocation:
        """Locate a struct's field: the same rows."""
        return ValueLocation(f"{self.path}.{name}", self.parent_row, self.depth + 1)

    def items(self, offsets: Sequence[int]) -> ValueLocation:
        """Locate the items of lists that lie end to end; ``offsets[i]`` is the position at which list ``i`` begins."""
        return ValueLocation(f"{self.path}[]", lambda at: self.row(bisect_right(offsets, at) - 1), self.depth + 1)

    def after(self, rows: int) -> ValueLocation:
        """Locate the same column ``rows`` rows further down (a later chunk)."""
        return ValueLocation(self.path, lambda at: self.row(at + rows), self.depth) if rows else self

    def describe(self, position: int) -> str:
        """Name the column and the row of ``position``, as every message about a value begins."""
        return f"Column {self.path!r}, row {self.row(position)}"

    def refuse(self, position: int, kind: type | str, why: str, hint: str) -> UnsupportedValueError:
        """Build the error for one value. ``why`` continues the sentence that names column and row."""
        return UnsupportedValueError(
            f"{self.describe(position)}: {why}.",
            hint=hint,
            details={
                "column": self.path,
                "row": self.row(position),
                "kind": kind if isinstance(kind, str) else name_of(kind),
            },
        )
