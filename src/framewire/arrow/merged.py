"""Neighbouring batches as one, without a copy: the buffers of a column are written one behind the other.

Whoever reads a table pays for each array of each batch: Polars a microsecond when it imports it, a take of a few rows a look
into every batch. Where columns are of fixed width, one long buffer is the short ones in a row, so a gather list can say what
would otherwise take a copy of the table.

pyarrow writes the metadata of such a batch when it is given arrays of that length. Their buffers are places in a mapping that
nobody ever touches; in what was written, the real pieces take their places.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as is_

MAX_BYTES: Final = 128 << 20
"""Of a merged batch, at most: enough that a gigabyte is a few of them, and a reader can still take up one at a time."""

Pieces = list[memoryview]


class Merged:
    """Batches to write in place of others, and what to put in place of the buffers that they show.

    Attributes:
        batches: Their buffers hold nothing.
    """

    def __init__(self, schema: pa.Schema, groups: Sequence[list[pa.RecordBatch]]) -> None:
        self._pieces: dict[int, Pieces] = {}
        # Bitmaps that a batch has not may be needed as well.
        self._room = _Room(
            sum(one.nbytes + one.num_columns * (one.num_rows // 8 + 1) for group in groups for one in group)
        )
        self.batches = [group[0] if len(group) == 1 else self._merge(schema, group) for group in groups]

    def put_in_place(self, parts: Sequence[memoryview]) -> Iterator[memoryview]:
        """What was written, with the real pieces."""
        for part in parts:
            pieces = self._pieces.get(pa.py_buffer(part).address) if len(part) else None
            if pieces is None:
                yield part
            else:
                yield from pieces

    def _merge(self, schema: pa.Schema, group: list[pa.RecordBatch]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [self._column(field.type, [batch.column(at) for batch in group]) for at, field in enumerate(schema)],
            schema=schema,
        )

    def _column(self, kind: pa.DataType, chunks: list[pa.Array]) -> pa.Array:
        nulls = sum(chunk.null_count for chunk in chunks)
        rows = sum(map(len, chunks))
        bitmap = None if not nulls else self._buffer([_bitmap(chunk) for chunk in chunks])
        values = self._buffer([_values(chunk) for chunk in chunks])
        return pa.Array.from_buffers(kind, rows, [bitmap, values], null_count=nulls)

    def _buffer(self, pieces: Pieces) -> pa.Buffer:
        buffer = self._room.take(sum(map(len, pieces)))
        self._pieces[buffer.address] = pieces
        return buffer


class _Room:
    """Addresses of their own: a mapping that is never touched takes no memory."""

    def __init__(self, nbytes: int) -> None:
        self._area = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
        self._buffer: Any = pa.py_buffer(self._area)
        self._used = 0

    def take(self, nbytes: int) -> pa.Buffer:
        self._used += nbytes
        return self._buffer.slice(self._used - nbytes, nbytes)


def merged(table: pa.Table) -> Merged | None:
    """How ``table`` can be written in fewer batches; None where it cannot, or would not be in fewer."""
    if (
        not hasattr(mmap, "MAP_PRIVATE")
        or table.num_columns == 0
        or max(column.num_chunks for column in table.columns) < 2
    ):
        return None
    if not all(_has_one_width(field.type) for field in table.schema):
        return None
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    if not all(map(_is_whole, batches)):
        return None
    groups: list[list[pa.RecordBatch]] = []
    size = 0
    for batch in batches:
        # A batch whose rows do not fill its last byte of bits can only be the last of its group.
        open_ended = bool(groups) and groups[-1][-1].num_rows % 8 == 0
        if open_ended and size + batch.nbytes <= MAX_BYTES:
            groups[-1].append(batch)
            size += batch.nbytes
        else:
            groups.append([batch])
            size = batch.nbytes
    return Merged(table.schema, groups) if len(groups) < len(batches) else None


def _has_one_width(kind: pa.DataType) -> bool:
    fixed: tuple[Callable[[Any], bool], ...] = (is_.is_primitive, is_.is_decimal, is_.is_fixed_size_binary)
    views = is_.is_string_view(kind) or is_.is_binary_view(kind)
    return bool(views or (any(test(kind) for test in fixed) and kind.bit_width))


def _is_whole(batch: pa.RecordBatch) -> bool:
    """Whether bits begin at the first bit of a byte, and no view leads to another buffer, whose number would change."""
    return all(
        column.offset % 8 == 0 and not any(data.size for data in column.buffers()[2:]) for column in batch.columns
    )


def _values(chunk: pa.Array) -> memoryview:
    bits = 128 if is_.is_string_view(chunk.type) or is_.is_binary_view(chunk.type) else chunk.type.bit_width
    start = chunk.offset * bits // 8
    return memoryview(chunk.buffers()[1]).cast("B")[start : start + -(-len(chunk) * bits // 8)]


def _bitmap(chunk: pa.Array) -> memoryview:
    nbytes = -(-len(chunk) // 8)
    if chunk.buffers()[0] is None:
        return memoryview(b"\xff" * nbytes)
    start = chunk.offset // 8
    return memoryview(chunk.buffers()[0]).cast("B")[start : start + nbytes]
