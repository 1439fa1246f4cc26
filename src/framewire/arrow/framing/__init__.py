"""A look at the framing of an Arrow IPC stream before anything decodes it.

``scan`` reads what the stream declares about itself (messages, schema, rows, buffers) and refuses what contradicts
itself, has a type that framewire does not carry, or would take more rows or bytes than allowed: 224 bytes can declare
2^40 rows, 33 KB of zstd fill a gigabyte, and a stream that was cut on a message's boundary is a valid, shorter one to
Arrow's own reader. It reads metadata only, so its cost goes with the number of batches and columns, not with the bytes
(``docs/explanation/security.md`` has the measurements).

What the values themselves come to is known once they are decoded: ``check_expanded``. Whether they are valid is
``pa.Table.validate(full=True)``'s to say.

Format: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Final

import pyarrow as pa

from framewire import wire
from framewire.arrow.framing._batches import Batches, Limits, too_large
from framewire.arrow.framing._flatbuffer import PastTheEnd, Table, malformed, refused
from framewire.arrow.framing._schema import Schema, read_schema
from framewire.errors import BadBodyError, TooLargeError

__all__ = [
    "MAX_EMPTY",
    "MAX_MESSAGES",
    "StreamShape",
    "scan",
]

MAX_MESSAGES: Final = 1 << 20
"""Batches of any kind. Each costs some microseconds, here and in Arrow, and a body of 8 GiB has room for 40 million."""
MAX_EMPTY: Final = 1 << 12
"""Batches without rows among them: framewire writes none, other writers a few."""

_CONTINUATION: Final = 0xFFFFFFFF
_FRAME: Final = Struct("<Ii")
_VERSION_5: Final = 4
"""``MetadataVersion.V5``, which every writer since Arrow 1.0 (2020) writes."""
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3


@dataclass(frozen=True)
class StreamShape:
    """What a stream declares, checked.

    Attributes:
        rows: Rows of all record batches.
        columns: Columns of the table.
        batches: Record batches.
        dictionaries: Dictionary batches.
        expanded_bytes: Bytes of all buffers once decompressed, and a byte for each value of a column that has none.
        compressed: Whether any batch has compressed buffers.
    """

    rows: int
    columns: int
    batches: int
    dictionaries: int
    expanded_bytes: int
    compressed: bool


def scan(buffer: pa.Buffer, *, max_rows: int, max_bytes: int, rows: int | None, allow_compression: bool) -> StreamShape:
    """Check the framing of a whole Arrow IPC stream; nothing is decoded or allocated for its values.

    Args:
        buffer: The stream, from its schema to its end mark.
        max_rows: Most rows.
        max_bytes: Most bytes, as they are and once decompressed.
        rows: Rows that were announced, or None when nothing was.
        allow_compression: Whether buffers may be compressed (zstd or lz4).

    Returns:
        What the stream declares.

    Raises:
        BadBodyError: It is cut off, malformed, has another number of rows than announced, or a type that framewire does
            not carry.
        TooLargeError: It is above a limit.
    """
    walk = _Walk(memoryview(buffer).cast("B"), Limits(max_rows, max_bytes, allow_compression), rows)
    try:
        return walk.run()
    except PastTheEnd:
        raise malformed("a message points past its end") from None


@lru_cache(maxsize=64)
def _remembered_schema(metadata: bytes) -> Schema:
    """Small fetches come with the same few schemas again and again: a tenth of their time went into reading them."""
    message = Table.root(memoryview(metadata))
    header = message.table(2)
    if header is None:
        raise malformed("a message has no content")
    return read_schema(message, header, nbytes=len(metadata), max_fields=wire.MAX_COLUMNS)


_REMEMBERED_BYTES: Final = 16 << 10
"""Longest metadata that is remembered: a stranger can fill the memory with a megabyte of it, and no more."""


class _Walk:
    """From message to message."""

    def __init__(self, stream: memoryview, limits: Limits, announced: int | None) -> None:
        self._stream = stream
        self._limits = limits
        self._announced = announced
        self._schema: Schema | None = None
        self._records: Batches
        self._dictionaries: dict[int, Batches] = {}
        self._rows = 0
        self._batches = 0
        self._empty = 0

    def run(self) -> StreamShape:
        size = len(self._stream)
        if size > self._limits.max_bytes:
            raise TooLargeError(
                f"The body has {size} bytes, above {self._limits.max_bytes}.",
                hint="Raise FRAMEWIRE_MAX_BODY_BYTES or select fewer rows.",
            )
        position = 0
        while True:
            if position + _FRAME.size > size:
                raise _cut_off()
            marker, length = _FRAME.unpack_from(self._stream, position)
            position += _FRAME.size
            if marker != _CONTINUATION or length < 0 or length % 8:
                raise malformed("a message does not begin where it should")
            if length == 0:
                break
            if position + length > size:
                raise _cut_off()
            position = self._message(self._stream[position : position + length], position + length)
        if position != size:
            raise refused(f"{size - position} bytes follow the end of the Arrow stream.")
        return self._finish()

    def _message(self, metadata: memoryview, start: int) -> int:
        """Take up one message whose body begins at ``start``; returns where the body ends."""
        message = Table.root(metadata)
        size = message.i64(3)
        if message.i16(0) != _VERSION_5:
            raise refused("The Arrow stream has messages of another version than V5.")
        if size < 0 or size % 8:
            raise malformed("a body is not aligned")
        if start + size > len(self._stream):
            raise _cut_off()
        kind, header = message.u8(1), message.table(2)
        if header is None:
            raise malformed("a message has no content")
        if self._schema is None:
            if kind != _SCHEMA or size:
                raise malformed("it does not begin with a schema")
            if len(metadata) <= _REMEMBERED_BYTES:
                self._schema = _remembered_schema(bytes(metadata))
            else:
                self._schema = read_schema(message, header, nbytes=len(metadata), max_fields=wire.MAX_COLUMNS)
            self._records = Batches(self._schema.batches)
        elif kind == _DICTIONARY:
            self._dictionary(self._schema, header, start, size)
        elif kind == _RECORDS:
            rows = self._records.add(header, start, size, self._limits)
            self._count_batch(rows)
            self._count_rows(rows)
        else:
            raise malformed("it has a message that is no batch")
        return start + size

    def _dictionary(self, schema: Schema, header: Table, start: int, size: int) -> None:
        number, data = header.i64(0), header.table(1)
        if number not in schema.dictionaries or data is None:
            raise malformed("it has a dictionary that no column uses")
        if number not in self._dictionaries:
            self._dictionaries[number] = Batches(schema.dictionaries[number])
        batches = self._dictionaries[number]
        delta = bool(header.u8(2))
        if delta and not batches.rows:
            raise malformed("it adds to a dictionary that is not there")
        self._count_batch(batches.add(data, start, size, self._limits, delta=delta))

    def _count_batch(self, rows: int) -> None:
        self._batches += 1
        self._empty += not rows
        if self._batches > MAX_MESSAGES or self._empty > MAX_EMPTY:
            raise TooLargeError(
                f"The body has more than {MAX_MESSAGES} batches, or {MAX_EMPTY} without rows.",
                hint="Publish it in fewer batches.",
            )

    def _count_rows(self, rows: int) -> None:
        self._rows += rows
        if self._rows > self._limits.max_rows:
            raise TooLargeError(
                f"The body has more than {self._limits.max_rows} rows.",
                hint="Raise FRAMEWIRE_MAX_ROWS or select fewer rows.",
            )

    def _finish(self) -> StreamShape:
        if self._schema is None:
            raise malformed("it does not begin with a schema")
        if self._announced is not None and self._rows != self._announced:
            raise refused(f"The body holds {self._rows} rows where {self._announced} were announced.")
        groups = [self._records, *self._dictionaries.values()]
        expanded = sum(group.check(self._stream, self._limits) for group in groups)
        if expanded > self._limits.max_bytes:
            raise too_large(expanded, self._limits)
        return StreamShape(
            rows=self._rows,
            columns=self._schema.columns,
            batches=len(self._records.rows),
            dictionaries=sum(len(group.rows) for group in self._dictionaries.values()),
            expanded_bytes=expanded,
            compressed=any(any(group.compressed) for group in groups),
        )


def _cut_off() -> BadBodyError:
    return refused("The Arrow stream has no end mark: it was cut off.")
