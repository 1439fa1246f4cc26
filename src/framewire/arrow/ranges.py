"""Columns checked against the range of stored integers that a wire type or a frame can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from framewire.arrow.items import visible_leaves
from framewire.arrow.search import first_failing
from framewire.arrow.types import any_type

Range: TypeAlias = "tuple[int, int] | None"
"""The least and the greatest stored integer that is held exactly, or None where every one is."""


class OutOfRange(NamedTuple):
    """The first row with a value out of range, the value's path within the column (``.field``, ``[]``), and its type."""

    row: int
    path: str
    dtype: pa.DataType


def is_ranged(dtype: pa.DataType, range_of: Callable[[pa.DataType], Range]) -> bool:
    """Whether ``range_of`` bounds the type, or a type within it: only then do values have to be read."""
    return any_type(lambda part: range_of(part) is not None, dtype)


def out_of_range(column: pa.ChunkedArray, range_of: Callable[[pa.DataType], Range]) -> OutOfRange | None:
    """The first value of ``column`` out of its type's range, or None. Values that no row shows do not count.

    Args:
        column: Any type; valid values.
        range_of: The range of an innermost type of 32 or 64 bits.
    """
    row = 0
    for chunk in column.chunks if is_ranged(column.type, range_of) else ():
        if (found := _out_of_range(chunk, range_of)) is not None:
            return found._replace(row=row + found.row)
        row += len(chunk)
    return None


def _out_of_range(array: pa.Array, range_of: Callable[[pa.DataType], Range]) -> OutOfRange | None:
    if _first_leaf(array, range_of) is None:
        return None
    row = first_failing(len(array), lambda start, stop: _first_leaf(array[start:stop], range_of) is not None)
    leaf = _first_leaf(array[row : row + 1], range_of)
    assert leaf is not None
    return OutOfRange(row, *leaf)


def _first_leaf(array: pa.Array, range_of: Callable[[pa.DataType], Range]) -> tuple[str, pa.DataType] | None:
    """Path and type of the first leaf with a value out of its range."""
    for leaf, path in visible_leaves(array, lambda dtype: range_of(dtype) is not None):
        stored = leaf.view(pa.int32() if leaf.type.bit_width == 32 else pa.int64())
        extremes, range_ = pc.min_max(stored).as_py(), range_of(leaf.type)
        assert range_ is not None
        least, greatest = extremes["min"], extremes["max"]
        if least is not None and not range_[0] <= least <= greatest <= range_[1]:
            return path, leaf.type
    return None
