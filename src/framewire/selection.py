"""Selections of rows and columns: ids and inclusive ranges, checked against a table, as runs or indices.

A selection keeps its order and its duplicates. It is held as runs (start, stop) in two numpy arrays, so that ``"0-9999999"``
costs as little as one id and nothing is expanded before its size has been checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framewire import wire
from framewire.arrow.take import int64_array
from framewire.errors import RowOutOfRangeError, SelectionError, UnknownKeyError
from framewire.typing import RowIds

_HINT: Final = (
    'Row ids are whole numbers from 0, or inclusive ranges as text: [0, 2, "5-99", "200-"]. Take them from "_row_id".'
)
_ITEM: Final = re.compile(r"(\d{1,18})(?:(-)(\d{1,18})?)?")
_OPEN: Final = -1
"""Marks the end of a range that goes to the last row."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowSpec:
    """Requested row ids, not yet checked against a table.

    Attributes:
        starts: First row of each run, int64.
        lasts: Last row of each run (inclusive), int64; -1 where the range is open.
    """

    starts: Ints
    lasts: Ints

    @property
    def is_empty(self) -> bool:
        """Whether the selection is of no rows."""
        return len(self.starts) == 0

    @property
    def is_open(self) -> bool:
        """Whether a range runs to the end of a table whose size is not known yet."""
        return bool((self.lasts == _OPEN).any())

    def count(self) -> int | None:
        """Return the number of requested rows, duplicates counted; None while a range is open."""
        return None if self.is_open else _total(self.starts, self.lasts + 1)

    def to_wire(self) -> list[int | str]:
        """Return the JSON form, adjacent ids joined into ranges (``[0, 1, 2, 9]`` becomes ``["0-2", 9]``)."""
        starts, lasts = _merge(self.starts, self.lasts)
        if (starts == lasts).all():
            singles: list[int | str] = starts.tolist()
            return singles
        return [
            s if s == e else f"{s}-" if e == _OPEN else f"{s}-{e}"
            for s, e in zip(starts.tolist(), lasts.tolist(), strict=True)
        ]

    def expand(self) -> Ints:
        """Return every id in order, int64. Only for closed specs whose ``count`` has been checked."""
        return _expand(self.starts, self.lasts + 1)

    def split(self, rows: int) -> Iterator[RowSpec]:
        """Split a closed spec into pieces of at most ``rows`` rows each, in order, one at a time."""
        stops = self.lasts + 1
        starts_now: list[int] = []
        lasts_now: list[int] = []
        left = rows
        for start, stop in zip(self.starts.tolist(), stops.tolist(), strict=True):
            while start < stop:
                step = min(left, stop - start)
                starts_now.append(start)
                lasts_now.append(start + step - 1)
                start += step
                left -= step
                if left == 0:
                    yield _spec(starts_now, lasts_now)
                    starts_now, lasts_now, left = [], [], rows
        if starts_now:
            yield _spec(starts_now, lasts_now)


def _spec(starts: Sequence[int], lasts: Sequence[int]) -> RowSpec:
    return RowSpec(np.array(starts, dtype=np.int64), np.array(lasts, dtype=np.int64))


def _total(starts: Ints, stops: Ints) -> int:
    # A float sum first: a hostile list of long ranges overflows int64, and then only the magnitude matters.
    rough = float((stops - starts).astype(np.float64).sum())
    return int((stops - starts).sum()) if rough < 2**62 else int(rough)


def _merge(starts: Ints, lasts: Ints) -> tuple[Ints, Ints]:
    """Merge adjacent runs; an open run ends its group."""
    if len(starts) < 2:
        return starts, lasts
    breaks = np.flatnonzero((starts[1:] != lasts[:-1] + 1) | (lasts[:-1] == _OPEN)) + 1
    heads = np.concatenate(([0], breaks))
    tails = np.concatenate((breaks - 1, [len(starts) - 1]))
    return starts[heads], lasts[tails]


def _expand(starts: Ints, stops: Ints) -> Ints:
    lengths = stops - starts
    if (lengths == 1).all():
        return starts
    ends = np.cumsum(lengths)
    steps = np.repeat(starts - (ends - lengths), lengths)
    return steps + np.arange(len(steps), dtype=np.int64)


def parse_row_ids(value: RowIds | RowSpec) -> RowSpec:
    """Read row ids in any accepted form.

    Args:
        value: A sequence of whole numbers (int, whole-number float or text) and inclusive ranges (``"5-99"``, ``"200-"``); the
            same as JSON text (``"[0, 2]"``) or separated by commas (``"0,2,5-99"``); or an integer Arrow array.

    Returns:
        The ids in the order given, duplicates kept.

    Raises:
        SelectionError: An id is negative, fractional, a boolean, or not a number; the message names it.
    """
    if isinstance(value, RowSpec):
        return value
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return _from_arrow(value)
    if isinstance(value, str):
        text = value.strip()
        if not text.startswith("["):
            return _from_items([part.strip() for part in text.split(",")] if text else [])
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise SelectionError("row_ids is not valid JSON.", hint=_HINT) from None
    if isinstance(value, bool | int | float):
        value = [value]
    if not isinstance(value, Sequence) or isinstance(value, bytes | bytearray):
        raise SelectionError(f"row_ids is of type {type(value).__name__}.", hint=_HINT)
    return _from_items(value)


def _from_arrow(array: pa.Array | pa.ChunkedArray) -> RowSpec:
    if not pa.types.is_integer(array.type) or array.null_count:
        what = "nulls" if pa.types.is_integer(array.type) else f"{array.type} values"
        raise SelectionError(f"row_ids holds {what}.", hint=_HINT)
    try:
        cast = array.cast(pa.int64())
    except pa.ArrowInvalid:
        raise SelectionError("row_ids holds a number beyond int64.", hint=_HINT) from None
    # Not to_numpy(): it imports pandas where that is installed, half a second for the first selection of a process.
    chunks = cast.chunks if isinstance(cast, pa.ChunkedArray) else [cast]
    parts = [np.frombuffer(c.buffers()[1], np.int64, len(c), 8 * c.offset) for c in chunks if len(c)]
    return _checked(np.concatenate([np.empty(0, np.int64), *parts]))


def _checked(ids: Ints) -> RowSpec:
    if len(ids) and ids.min() < 0:
        raise _refused(int(ids.min()))
    return RowSpec(ids, ids)


def _from_items(items: Sequence[Any]) -> RowSpec:
    if set(map(type, items)) <= {int}:
        try:
            return _checked(np.array(items, dtype=np.int64))
        except OverflowError:
            raise _refused(max(items, key=abs)) from None
    runs = [_item(item) for item in items]
    return _spec([start for start, _ in runs], [last for _, last in runs])


def _item(item: Any) -> tuple[int, int]:
    """Parse one id or range to (start, last)."""
    if isinstance(item, str):
        found = _ITEM.fullmatch(item.strip())
        if found is None or not item.isascii():
            raise _refused(item)
        start = int(found[1])
        last = start if found[2] is None else _OPEN if found[3] is None else int(found[3])
        if last != _OPEN and last < start:
            raise SelectionError(f"The range {item.strip()!r} runs backwards.", hint=_HINT)
        return start, last
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | float | np.integer | np.floating):
        raise _refused(item)
    if item != item or item < 0 or item > 2**62 or int(item) != item:
        raise _refused(item)
    return int(item), int(item)


def _refused(item: Any) -> SelectionError:
    shown = "true" if item is True else "false" if item is False else repr(item)[:40]
    return SelectionError(f"{shown} is not a row id.", hint=_HINT)


@dataclass(frozen=True)
class Rows:
    """A selection that was checked against a table.

    Attributes:
        starts: First row of each run, int64; adjacent runs are merged.
        stops: One past the last row of each run, int64.
        total_rows: Rows of the table.
        count: Rows selected, duplicates counted.
    """

    starts: Ints
    stops: Ints
    total_rows: int
    count: int

    @property
    def is_all(self) -> bool:
        """Whether every row is selected, in order."""
        return self.contiguous == (0, self.total_rows)

    @cached_property
    def contiguous(self) -> tuple[int, int] | None:
        """(start, stop) when the rows are one contiguous run; (0, 0) when there are none; else None."""
        if len(self.starts) == 0:
            return (0, 0)
        return (int(self.starts[0]), int(self.stops[0])) if len(self.starts) == 1 else None

    def indices(self) -> pa.Array:
        """Return every selected row, int64, in order. Check ``count`` before calling."""
        return int64_array(_expand(self.starts, self.stops))


def resolve_rows(spec: RowSpec | None, total_rows: int) -> Rows:
    """Check ``spec`` against a table of ``total_rows`` rows; None means every row.

    Raises:
        RowOutOfRangeError: A row does not exist; the message names the first such id.
    """
    if spec is None:
        starts, stops = np.zeros(1, dtype=np.int64), np.full(1, total_rows, dtype=np.int64)
        return Rows(starts, stops, total_rows, total_rows)
    lasts = np.where(spec.lasts == _OPEN, max(total_rows - 1, 0), spec.lasts)
    # An open range may start at the end ("200-" of 200 rows is empty), never past it.
    empty_open = (spec.lasts == _OPEN) & (spec.starts == total_rows)
    bad = ((spec.starts >= total_rows) & ~empty_open) | ((lasts >= total_rows) & ~empty_open)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        worst = int(spec.starts[first] if spec.starts[first] >= total_rows else lasts[first])
        have = f"Rows 0 to {total_rows - 1} exist." if total_rows else "The table has no rows."
        raise RowOutOfRangeError(
            f"Row {worst} does not exist.",
            hint=f"{have} Choose ids from the abstract's _row_id.",
            details={"row": worst},
        )
    starts, lasts = _merge(spec.starts[~empty_open], lasts[~empty_open])
    return Rows(starts, lasts + 1, total_rows, _total(starts, lasts + 1))


@dataclass(frozen=True)
class Selection:
    """The rows and columns that one request selects.

    Attributes:
        rows: The rows, or None for all.
        columns: Column names in the requested order, or None for all. ``_row_id`` is always in the response.
    """

    rows: RowSpec | None = None
    columns: tuple[str, ...] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the request names neither rows nor columns."""
        return self.rows is None and self.columns is None


def parse_selection(request: Any) -> Selection:
    """Read the JSON object of a ``POST``, or its equivalent from a query string.

    Raises:
        SelectionError: The request is not an object, or a value is malformed.
        UnknownKeyError: Wire version 1 does not define a key.
    """
    if not isinstance(request, Mapping):
        raise SelectionError(
            "The request is not a JSON object.", hint='Send {"row_ids": [...], "columns": [...]} or {}.'
        )
    for key in request:
        if key not in wire.REQUEST_KEYS:
            raise UnknownKeyError(f"There is no request key {str(key)[:80]!r}.", hint="Keys: row_ids, columns, where.")
    if request.get("where") is not None:
        raise SelectionError("This server does not select with 'where'.", hint="Select with row_ids.")
    row_ids = request.get("row_ids")
    columns = request.get("columns")
    return Selection(
        rows=None if row_ids is None else parse_row_ids(row_ids),
        columns=None if columns is None else parse_columns(columns),
    )


def parse_columns(columns: Any) -> tuple[str, ...]:
    """Return column names as a tuple, without ``_row_id`` (it is always sent).

    Raises:
        SelectionError: Not a list of text, or a name appears twice.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not all(isinstance(c, str) for c in columns):
        raise SelectionError(
            "columns is not a list of names.", hint='Send ["name", ...], or leave it out for every column.'
        )
    names = tuple(c for c in columns if c != wire.ROW_ID)
    if len(set(names)) < len(names):
        twice = next(c for i, c in enumerate(names) if c in names[:i])
        raise SelectionError(f"columns names {twice!r} twice.", hint="Name each column once.")
    return names
