"""Arrow IPC streams read: our own without a copy, and those that came from outside, checked in a fixed order.

Arrow's own reader verifies each message (flatbuffers, lengths, cut-offs) and decodes without a copy. What it leaves open is checked
here before it decodes: how much a small stream declares, compressed buffers that expand, types that framewire does not carry.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from framewire import wire
from framewire.arrow.expanded import ExpandedSize, NeedsExactCount, check_expanded
from framewire.arrow.layout import BatchLayout, batch_layout, has_own_metadata
from framewire.arrow.message_text import text_bytes
from framewire.arrow.types import children, is_flat, is_view
from framewire.arrow.validate import check_hidden_views
from framewire.arrow.validate import validate as validate_values
from framewire.errors import BadBodyError, S2SPError, TooLargeError

MAX_MESSAGES: Final = 1 << 20
"""Batches of any kind. Each costs some microseconds."""
MAX_EMPTY: Final = 4096
"""Batches without rows among them: framewire writes none, other writers a few."""
MAX_DEPTH: Final = 64
"""Levels of nesting: what Arrow's own reader accepts."""

END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""Continuation marker and a zero length: the only clean end of an Arrow IPC stream."""
_VERSION_5: Final = 4
"""``MetadataVersion.V5``, which every writer since Arrow 1.0 (2020) writes."""
_CONTINUATION: Final = 0xFFFFFFFF
_FRAME: Final = Struct("<Ii")
_REMEMBERED_BYTES: Final = 16 << 10
"""Longest metadata that is remembered: a stranger can fill the memory with a megabyte of it, and no more."""
_EXTENSION: Final = b"ARROW:extension:"
_SMALL_BYTES: Final = 1 << 20
_SMALL_ROWS: Final = 100_000
_PREFIX_BYTES: Final = 8
"""Before each compressed buffer: its length once decompressed, or -1 when it is not compressed after all."""
_AGAIN: Final = "Nothing was kept; fetch it again."


def open_own(buffer: pa.Buffer) -> pa.Table:
    """Decode a stream of our own, zero-copy: the columns are views into ``buffer``."""
    with pa.ipc.open_stream(pa.BufferReader(buffer)) as reader:
        return reader.read_all()


def decode(
    buffer: pa.Buffer,
    *,
    rows: int | None,
    max_rows: int,
    max_bytes: int,
    validate: bool = True,
    allow_compression: bool = False,
) -> pa.Table:
    """Decode a stream that came from outside, checked in a fixed order: its framing, its decoding, its values.

    Args:
        buffer: The whole body; the table's columns are views into it, unless they were compressed.
        rows: Rows that were announced, or None when nothing was.
        max_rows: Most rows accepted.
        max_bytes: Most bytes accepted: as they came, decompressed, and with views and dictionaries written out.
        validate: Whether every value is checked (``validate(full=True)``); off only for trusted peers.
        allow_compression: Whether buffers may be compressed; on only for trusted peers.

    Raises:
        BadBodyError: The bytes are not a valid stream, end early, or hold another number of rows.
        TooLargeError: A limit is exceeded.
    """
    if buffer.size > max_bytes:
        raise TooLargeError(
            f"The body has {buffer.size} bytes, above {max_bytes}.",
            hint="Raise FRAMEWIRE_MAX_BODY_BYTES or select fewer rows.",
        )
    try:
        declared = Declared(max_rows, max_bytes, allow_compression)
        declared.add_stream(buffer, rows)
        table = open_own(buffer)
        _check_structure(table)
        if validate:
            _validate(table, max_bytes, stored_bytes=declared.nbytes)
    except S2SPError:
        raise
    except Exception as exc:
        # Whatever the decoder raises on hostile bytes (seen: UnicodeDecodeError, OverflowError) is one kind of failure.
        raise _bad(f"The body is not a valid Arrow stream ({type(exc).__name__}).") from None
    if table.num_rows != declared.rows:
        raise _bad(f"The body holds {table.num_rows} rows where {declared.rows} were declared.")
    return table


def _check_structure(table: pa.Table) -> None:
    """Lengths, offsets' ends and buffer sizes, without a look at the values: microseconds."""
    try:
        table.validate()
    except pa.ArrowInvalid:
        for name, column in zip(table.schema.names, table.columns, strict=True):
            try:
                column.validate()
            except pa.ArrowInvalid:  # its text may be of any length
                raise _malformed(f"column {name!r} does not fit its buffers") from None
        raise


def _validate(table: pa.Table, max_bytes: int, *, stored_bytes: int) -> None:
    if stored_bytes < _SMALL_BYTES and table.num_rows < _SMALL_ROWS:
        check_expanded(table, max_bytes, stored_bytes=stored_bytes)
        for column in table.columns:
            for chunk in column.chunks:
                check_hidden_views(chunk)
        table.validate(full=True)
        return
    # Validation reads every byte that a view shows, and a thousand views can show the same megabyte: so each array is weighed
    # before it is read, while what is weighed is still in the processor's cache.
    size = ExpandedSize(max_bytes, stored_bytes=stored_bytes)

    def before(array: pa.Array) -> None:
        size.add(array)
        check_hidden_views(array)

    try:
        validate_values(table, before)
    except NeedsExactCount:
        check_expanded(table, max_bytes, stored_bytes=stored_bytes)
        validate_values(table, check_hidden_views)


class Declared:
    """Counts what the messages of a stream declare, before anything is decoded or allocated for their values.

    Attributes:
        rows: Rows of all record batches.
        nbytes: Bytes of all buffers once decompressed, and a byte for each value of a column that has none.
    """

    def __init__(self, max_rows: int, max_bytes: int, allow_compression: bool) -> None:
        self._max_rows, self._max_bytes, self._allow_compression = max_rows, max_bytes, allow_compression
        self.rows = 0
        self.nbytes = 0
        self._messages = self._empty = 0
        self._dictionaries: dict[int, int] = {}

    def add_stream(self, buffer: pa.Buffer, rows: int | None) -> None:
        """Count a whole stream.

        Raises:
            BadBodyError: It is cut off, malformed, has another number of rows than announced, or a type that framewire does
                not carry.
            TooLargeError: It is above a limit.
        """
        view = memoryview(buffer).cast("B") if buffer.size else memoryview(b"")
        if bytes(view[-len(END_OF_STREAM) :]) != END_OF_STREAM:
            raise _bad("The Arrow stream has no end mark: it was cut off.")
        messages = _messages(buffer, view)
        message = next(messages, None)
        if message is None or message.type != "schema":
            raise _malformed("it does not begin with a schema")
        metadata = message.metadata
        read_schema = _remembered_schema if metadata.size <= _REMEMBERED_BYTES else _schema
        schema = read_schema(metadata.to_pybytes(), wire.MAX_COLUMNS)
        for message in messages:
            if message.type not in ("record batch", "dictionary"):
                raise _malformed("it has a message that is not a batch")
            layout = batch_layout(memoryview(message.metadata))
            if layout.is_delta and schema.has_words:
                # Arrow validates values in full before it joins them, and a million views may show the same megabyte.
                raise _bad(
                    "The Arrow stream adds to a dictionary, beside dictionaries of views; framewire does not read that."
                )
            self._add(layout, message.body, schema.weightless)
        if rows is not None and self.rows != rows:
            raise _bad(f"The body holds {self.rows} rows where {rows} were announced.")

    def _add(self, layout: BatchLayout, body: pa.Buffer | None, weightless: npt.NDArray[np.bool_]) -> None:
        self._count(layout)
        lengths, nulls = layout.nodes.T
        if len(lengths) and ((nulls < 0) | (nulls > lengths)).any():
            raise _malformed("a column has more nulls than rows, or fewer than none")
        nbytes = self._buffer_bytes(layout, memoryview(body).cast("B") if body is not None and body.size else b"")
        if layout.dictionary is None:
            if len(lengths) != len(weightless):
                raise _malformed("a batch has other columns than the schema")
            nbytes += int(lengths[weightless].sum(dtype=np.float64)) if len(lengths) else layout.rows
        elif layout.is_delta:
            # Each delta makes a new dictionary of all that came before.
            nbytes += self._dictionaries.get(layout.dictionary, 0)
        if layout.dictionary is not None:
            self._dictionaries[layout.dictionary] = nbytes
        self.nbytes += nbytes
        if self.nbytes > self._max_bytes:
            raise TooLargeError(
                f"The body holds {self.nbytes} bytes once decoded, above {self._max_bytes}.",
                hint="Raise FRAMEWIRE_MAX_BODY_BYTES or select fewer rows.",
            )

    def _count(self, layout: BatchLayout) -> None:
        if layout.rows < 0:
            raise _malformed("a batch has fewer than no rows")
        self._messages += 1
        self._empty += not layout.rows
        if self._messages > MAX_MESSAGES or self._empty > MAX_EMPTY:
            raise TooLargeError(
                f"The body has more than {MAX_MESSAGES} batches, or {MAX_EMPTY} without rows.",
                hint="Publish it in fewer batches.",
            )
        if layout.dictionary is None:
            self.rows += layout.rows
        if self.rows > self._max_rows:
            raise TooLargeError(
                f"The body has more than {self._max_rows} rows.",
                hint="Raise FRAMEWIRE_MAX_ROWS or select fewer rows.",
            )

    def _buffer_bytes(self, layout: BatchLayout, body: memoryview | bytes) -> int:
        """Bytes of a batch's buffers once decompressed; they lie inside the body, in order and apart."""
        offsets, sizes = layout.buffers[layout.buffers[:, 1] != 0].T
        if not len(offsets):
            return 0
        ends = offsets + sizes
        if min(offsets.min(), sizes.min()) < 0 or max(offsets.max(), sizes.max(), ends.max()) > len(body):
            raise _malformed("a buffer lies outside its batch")
        if (offsets[1:] < ends[:-1]).any():
            raise _malformed("two buffers overlap")
        if not layout.is_compressed:
            return int(sizes.sum())
        if not self._allow_compression:
            raise _bad("The Arrow stream is compressed, which was not asked for.")
        if (sizes < _PREFIX_BYTES).any() or (offsets % 8).any():
            raise _malformed("a compressed buffer is too short, or not aligned")
        prefixes = np.frombuffer(body, "<i8", len(body) // 8)[offsets // 8]
        if (prefixes < -1).any():
            raise _malformed("a compressed buffer declares less than nothing")
        return int(np.where(prefixes == -1, sizes - _PREFIX_BYTES, prefixes).sum(dtype=np.float64))


def _messages(buffer: pa.Buffer, view: memoryview) -> Iterator[pa.ipc.Message]:
    """The messages of a stream; the custom metadata of each is measured before Arrow copies it.

    Raises:
        BadBodyError: A message refers to more text than it has, or bytes follow the end.
    """
    source = pa.BufferReader(buffer)
    reader = pa.ipc.MessageReader.open_stream(source)
    while (position := source.tell()) < len(view) - len(END_OF_STREAM):
        marker, size = _FRAME.unpack_from(view, position)
        if marker != _CONTINUATION or size < 0:
            raise _malformed("a message does not begin where it should")
        metadata = view[position + _FRAME.size :][:size]
        if has_own_metadata(metadata):
            _check_text(metadata)
        message = next(reader, None)
        if message is None:
            raise _bad(f"{len(view) - source.tell()} bytes follow the end of the Arrow stream.")
        # Of each message: a batch of an older version may hide its compression in metadata that only Arrow reads.
        if message.metadata_version != _VERSION_5:
            raise _bad("The Arrow stream has messages of another version than V5.")
        yield message
    if position != len(view) - len(END_OF_STREAM):
        raise _bad(
            "The Arrow stream has no end mark: it was cut off."
        )  # its last bytes belong to a batch, and look like one


def _check_text(metadata: memoryview) -> None:
    if text_bytes(metadata, len(metadata)) > len(metadata):
        raise _malformed("a message refers to more text than it has room for")


class _Schema(NamedTuple):
    """A schema as far as batches are checked by it.

    Attributes:
        weightless: For each field of a batch, depth first: whether its values take no byte.
        has_words: Whether a dictionary holds views.
    """

    weightless: npt.NDArray[np.bool_]
    has_words: bool


def _schema(metadata: bytes, max_columns: int) -> _Schema:
    """Read a schema's message; types that do not cross the wire are refused."""
    _check_text(memoryview(metadata))
    if _EXTENSION in metadata:
        # Reading its schema would run the code that this process registered for the type.
        raise _bad("A column has an extension type, which framewire does not carry.")
    flags: list[bool] = []
    has_words = False
    for field in pa.ipc.read_schema(pa.py_buffer(_FRAME.pack(_CONTINUATION, len(metadata)) + metadata)):
        for dtype in _nodes(field.type, field.name, 0):
            flags.append(_is_weightless(dtype))
            has_words |= pa.types.is_dictionary(dtype) and is_view(dtype.value_type)
            if len(flags) > max_columns:
                raise TooLargeError(f"The body has more than {max_columns} columns.", hint="Ask for fewer columns.")
    return _Schema(np.array(flags, np.bool_), has_words)


_remembered_schema = lru_cache(maxsize=64)(_schema)
"""Small fetches come with the same few schemas again and again: a tenth of their time went into reading them."""


def _nodes(dtype: pa.DataType, path: str, depth: int) -> Iterator[pa.DataType]:
    """The type and those within it, depth first; the values of a dictionary come in batches of their own.

    Raises:
        BadBodyError: A type does not cross the wire.
    """
    if depth > MAX_DEPTH:
        raise _bad(f"A column is nested deeper than {MAX_DEPTH} levels.")
    if pa.types.is_dictionary(dtype):
        if not is_flat(dtype.value_type) or _is_weightless(dtype.value_type):
            raise _bad(f"Column {path!r} is a dictionary of values that framewire does not carry.")
    elif pa.types.is_timestamp(dtype) and not _is_zone_name(dtype):
        raise _bad(f"Column {path!r} has a time zone that is not a name.")
    elif pa.types.is_fixed_size_list(dtype) and dtype.list_size < 0:
        raise _malformed(f"column {path!r} has lists of {dtype.list_size} items")
    elif not (is_flat(dtype) or _is_nested(dtype)):
        raise _bad(f"Column {path!r} has a type that framewire does not carry.")
    yield dtype
    if not pa.types.is_dictionary(dtype):
        for field in children(dtype):
            yield from _nodes(field.type, f"{path}.{field.name}"[:200], depth + 1)


def _is_zone_name(dtype: pa.DataType) -> bool:
    """Not every reader of it copes with bytes that are not text."""
    try:
        return dtype.tz is None or "\0" not in dtype.tz
    except UnicodeDecodeError:
        return False


def _is_nested(dtype: pa.DataType) -> bool:
    types = pa.types
    tests = (types.is_struct, types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_map)
    return any(test(dtype) for test in tests)


def _is_weightless(dtype: pa.DataType) -> bool:
    if pa.types.is_struct(dtype):
        return not dtype.num_fields
    if pa.types.is_fixed_size_list(dtype):
        return not dtype.list_size
    return pa.types.is_null(dtype) or (pa.types.is_fixed_size_binary(dtype) and not dtype.byte_width)


def _bad(text: str) -> BadBodyError:
    return BadBodyError(text, hint=_AGAIN)


def _malformed(what: str) -> BadBodyError:
    return _bad(f"The Arrow stream is malformed: {what}.")
