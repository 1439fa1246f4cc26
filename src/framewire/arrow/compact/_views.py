"""String and binary views whose data buffers hold bytes that no view shows.

A view is 16 bytes: a length, then up to 12 bytes in place, or a prefix, a buffer number and an offset into one of the
array's data buffers. Slicing or filtering such an array copies views and keeps every buffer, so the bytes of the rows
that are gone are still there. An array is compact when the views cover each of its data buffers from end to end; totals
alone do not tell (two views of one text add up to two texts). Views that share bytes go on sharing them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from framewire.arrow.bits import as_array, as_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]

__all__ = ["pack_views"]

_INLINE_BYTES = 12
"""The longest text that lies in its view."""
_MAX_BUFFER_BYTES = (1 << 31) - 1
"""Offsets into a data buffer are 32-bit."""
_BLOCK_ROWS = 1 << 17
"""Views checked at a time: 2 MiB of them, read from the cache."""
_TABLE_FACTOR = 4
"""Bytes of data for each row up to which a table of all bytes is cheaper than sorting the rows."""


def pack_views(views: pa.Buffer, data: Sequence[pa.Buffer], length: int) -> tuple[pa.Buffer, list[pa.Buffer]]:
    """Views and data buffers that hold what the views show and nothing else.

    Args:
        views: ``length`` valid views; those of null rows are zero.
        data: The array's data buffers.
        length: Rows.

    Returns:
        The same objects where every data buffer is covered; else views that point into rebuilt buffers, after those
        buffers that were covered.
    """
    words = as_array(views, np.int32).reshape(length, 4)
    sizes = np.array([buffer.size for buffer in data], np.int64)
    if not data or _covers_in_order(words, sizes):
        return views, list(data)
    rows = np.flatnonzero(words[:, 0] > _INLINE_BYTES)
    # One line of positions for all buffers; the gap of one byte keeps intervals of neighbouring buffers apart.
    bases = _bases(sizes + 1)
    starts = bases[words[rows, 2]] + words[rows, 3]
    ends = starts + words[rows, 0]
    if _covers(starts, ends, sizes):
        return views, list(data)
    first, last, group = _merge(starts, ends, int(sizes.sum()) + len(sizes))
    size = last - first
    owner = np.searchsorted(bases, first, side="right") - 1
    offset = first - bases[owner]
    whole = (np.bincount(owner, weights=size, minlength=len(data)).astype(np.int64) == sizes) & (sizes > 0)
    kept = [buffer for buffer, stays in zip(data, whole, strict=True) if stays]
    number = (np.cumsum(whole) - 1)[owner]
    moved = np.flatnonzero(~whole[owner])
    rebuilt = _gather(data, owner[moved], offset[moved], size[moved])
    number[moved], offset[moved], buffers = _split(rebuilt, size[moved], len(kept))
    changed = words.copy()
    changed[rows, 2] = number[group]
    changed[rows, 3] = (offset - first)[group] + starts
    return as_buffer(changed), kept + buffers


def _bases(sizes: Longs) -> Longs:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)[:-1]))


def _covers_in_order(words: NDArray[Any], sizes: Longs) -> bool:
    """True if each view begins where the one before it ended, from the first byte to the last: how builders write."""
    at = (0, 0)
    for start in range(0, len(words), _BLOCK_ROWS):
        block = words[start : start + _BLOCK_ROWS]
        if block[:, 0].min() <= _INLINE_BYTES:
            # Five times as fast as a mask of rows.
            block = block.take(np.flatnonzero(block[:, 0] > _INLINE_BYTES), axis=0)
        if len(block) == 0:
            continue
        owner, starts = block[:, 2], block[:, 3]
        ends = starts + block[:, 0]
        steps = np.flatnonzero((starts[1:] != ends[:-1]) | (owner[1:] != owner[:-1]))
        # The step into this block, those from one buffer to the next within it, and nothing else.
        if len(steps) > len(sizes) or not _follows(at, (owner[0], starts[0]), sizes):
            return False
        if not all(_follows((owner[i], ends[i]), (owner[i + 1], starts[i + 1]), sizes) for i in steps.tolist()):
            return False
        at = (int(owner[-1]), int(ends[-1]))
    return at[1] == sizes[at[0]] and not sizes[at[0] + 1 :].any()


def _follows(at: tuple[Any, Any], to: tuple[Any, Any], sizes: Longs) -> bool:
    """True if no byte lies between two positions, each a buffer number and an offset."""
    (number, offset), (following, start) = (int(at[0]), int(at[1])), (int(to[0]), int(to[1]))
    if number == following:
        return offset == start
    return bool(
        number < following and offset == sizes[number] and start == 0 and not sizes[number + 1 : following].any()
    )


def _covers(starts: Longs, ends: Longs, sizes: Longs) -> bool:
    """True if the intervals, in any order, overlapping or not, cover every byte of every buffer.

    Starts and ends are sorted each on its own: a gap opens after the i-th end exactly when the next start lies beyond
    it. The one-byte gaps between the buffers are no part of any interval.
    """
    total = int(sizes.sum())
    if int((ends - starts).sum()) < total:
        return False
    if total <= _TABLE_FACTOR * len(starts):
        first, last, _ = _merge(starts, ends, total + len(sizes))
    else:
        begin, end = (values if _ascending(values) else np.sort(values) for values in (starts, ends))
        gaps = np.flatnonzero(begin[1:] > end[:-1])
        first, last = begin[np.concatenate(([0], gaps + 1))], end[np.concatenate((gaps, [-1]))]
    return int((last - first).sum()) == total


def _ascending(values: Longs) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _merge(starts: Longs, ends: Longs, span: int) -> tuple[Longs, Longs, Longs]:
    """The union of the half-open intervals: sorted starts and ends of what is covered without a gap, and which of them
    each interval lies in. Where many rows share few bytes a table of the bytes is faster than sorting the rows.
    """
    if span <= _TABLE_FACTOR * len(starts) and not _ascending(starts):
        steps = np.bincount(starts, minlength=span + 1) - np.bincount(ends, minlength=span + 1)
        edges = np.diff((np.cumsum(steps) > 0).astype(np.int8), prepend=0)
        return np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), (np.cumsum(edges > 0) - 1)[starts]
    order = None if _ascending(starts) else np.argsort(starts)
    if order is not None:
        starts, ends = starts[order], ends[order]
    if not _ascending(ends):
        ends = np.maximum.accumulate(ends)
    opens = np.ones(len(starts), np.bool_)
    np.greater(starts[1:], ends[:-1], out=opens[1:])
    group = np.cumsum(opens) - 1
    opened = np.flatnonzero(opens)
    if order is not None:
        unsorted = np.empty_like(group)
        unsorted[order] = group
        group = unsorted
    return starts[opened], ends[np.append(opened[1:] - 1, len(ends) - 1)[: len(opened)]], group


def _gather(data: Sequence[pa.Buffer], owner: NDArray[Any], offset: Longs, size: Longs) -> pa.Buffer:
    """The bytes of the intervals, end to end: each is a view itself, and the cast to a dense type copies at C speed."""
    words = np.zeros((len(owner), 4), np.int32)
    words[:, 0], words[:, 2], words[:, 3] = size, owner, offset
    array = pa.Array.from_buffers(pa.binary_view(), len(words), [None, as_buffer(words), *data], 0)
    total = int(size.sum())
    return array.cast(pa.large_binary()).buffers()[2].slice(0, total) if total else pa.py_buffer(b"")


def _split(dense: pa.Buffer, size: Longs, first_number: int) -> tuple[NDArray[Any], Longs, list[pa.Buffer]]:
    """Where each gathered interval now lies, the dense bytes cut into buffers that 32-bit offsets can reach."""
    ends = np.cumsum(size)
    starts = ends - size
    number = np.zeros(len(size), np.int32)
    offset = starts.copy()
    buffers: list[pa.Buffer] = []
    row = 0
    while row < len(size):
        origin = int(starts[row])
        stop = max(row + 1, int(np.searchsorted(ends, origin + _MAX_BUFFER_BYTES, side="right")))
        number[row:stop] = first_number + len(buffers)
        offset[row:stop] -= origin
        buffers.append(dense.slice(origin, int(ends[stop - 1]) - origin))
        row = stop
    return number, offset, buffers
