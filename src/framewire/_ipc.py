"""Arrow IPC streams: gather lists, one-buffer bodies, checksums, and decoding of what arrived.

Writing goes through a sink that collects the writer's own buffers, so the columns of a table are not copied to be sent.
A body that is kept is copied once, into one buffer that nobody else can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import xxhash

from framewire import wire
from framewire._framing import Growth, MayBeTooLarge, align, check_expanded, merged, scan
from framewire._validity import validate as validate_values
from framewire.errors import BadBodyError, TooLargeError

END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Continuation marker and a zero length: the only clean end of an Arrow IPC stream."""


@dataclass(frozen=True)
class Encoded:
    """An IPC stream as the pieces that make it up, in order.

    Attributes:
        parts: Byte views that keep their memory alive.
        nbytes: Sum of their lengths.
        checksum: ``xxh3-128=<hex>`` of the bytes.
    """

    parts: tuple[memoryview, ...]
    nbytes: int
    checksum: str

    def slices(self, size: int = wire.SLICE_BYTES) -> Iterator[memoryview]:
        """The bytes in views of at most ``size`` bytes; small neighbours are joined, large parts never copied."""
        small: list[memoryview] = []
        waiting = 0
        for part in self.parts:
            if len(part) < _SMALL_BYTES:
                small.append(part)
                waiting += len(part)
                if waiting < _SMALL_BYTES:
                    continue
                part = memoryview(b"")
            if small:
                yield memoryview(b"".join(small))
                small, waiting = [], 0
            for start in range(0, len(part), size):
                yield part[start : start + size]
        if small:
            yield memoryview(b"".join(small))


_SMALL_BYTES: Final = 16 << 10
"""Below this a system call costs more than the copy that saves it."""


class _Gather:
    """A file that keeps what is written to it, for ``pa.PythonFile``."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[memoryview] = []

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self.parts.append(view)
        return len(view)

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """The parts outlive the file."""


def new_hasher() -> xxhash.xxh3_128:
    """A hasher of the wire's checksum, for bytes that come one after the other."""
    return xxhash.xxh3_128()


def checksum_text(hasher: xxhash.xxh3_128) -> str:
    """What ``S2SP-Checksum`` says of the bytes that a hasher was told of."""
    return f"{wire.CHECKSUM_ALGORITHM}={hasher.hexdigest()}"


def checksum(parts: Iterable[memoryview | pa.Buffer | bytes]) -> str:
    """``xxh3-128=<hex>`` of the concatenated parts."""
    hasher = new_hasher()
    for part in parts:
        hasher.update(part)
    return checksum_text(hasher)


def encode(table: pa.Table, *, codec: str | None = None) -> Encoded:
    """Write ``table`` as an IPC stream without copying its buffers.

    Args:
        table: Any table; its buffers must stay unchanged for as long as the result lives.
        codec: ``zstd`` or ``lz4`` compresses each buffer (into new memory); None leaves them as they are.

    Returns:
        The stream's parts, length and checksum.
    """
    parts = collect(table, codec=codec)
    return Encoded(parts, sum(map(len, parts)), checksum(parts))


def collect(table: pa.Table, *, codec: str | None = None) -> tuple[memoryview, ...]:
    """The parts of :func:`encode` alone."""
    sink = _Gather()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    large = table.nbytes >= _LARGE_BYTES
    whole = merged(table) if large and codec is None else None
    batches = table.to_batches() if whole is None else whole.batches
    with pa.PythonFile(sink, mode="w") as file, pa.ipc.new_stream(file, table.schema, options=options) as writer:
        for batch in batches:
            if batch.num_rows:  # a filter may leave thousands of empty ones, which a reader has to take up one by one
                writer.write_batch(batch)
    # Small ones are copied by whoever needs them aligned, in less time than it takes to align them.
    parts = align(sink.parts) if large else [part for part in sink.parts if len(part)]
    return tuple(parts if whole is None else whole.put_in_place(parts))


_LARGE_BYTES: Final = 256 << 10


@contextmanager
def checksum_beside(parts: Sequence[memoryview]) -> Iterator[Callable[[], str]]:
    """:func:`checksum` in a thread, where that is worth it, while the parts are being copied; the answer waits for it."""
    if sum(map(len, parts)) < _THREAD_BYTES:
        yield lambda: checksum(parts)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="framewire-checksum") as pool:
        yield pool.submit(checksum, parts).result


_THREAD_BYTES: Final = 16 << 20


def compresses_well(table: pa.Table, codec: str) -> bool:
    """Whether ``codec`` takes at least a fifth off a sample of ``table``: less is not worth the processor's time."""
    sample = table.slice(table.num_rows // 3, _SAMPLE_ROWS)
    return _pays(encode(sample, codec=codec).nbytes, encode(sample).nbytes)


def encode_if_smaller(table: pa.Table, codec: str) -> Encoded | None:
    """``table`` compressed, or None where that takes less than a fifth off it; a small one is not tried twice."""
    if table.num_rows > 2 * _SAMPLE_ROWS and not compresses_well(table, codec):
        return None
    made = encode(table, codec=codec)
    return made if _pays(made.nbytes, table.nbytes) else None


def _pays(compressed: int, plain: int) -> bool:
    return compressed <= plain * 4 // 5


_SAMPLE_ROWS: Final = 16_384


def gather(parts: Iterable[memoryview], nbytes: int) -> pa.Buffer:
    """Copy ``parts`` into one new buffer of ``nbytes`` bytes."""
    buffer = pa.allocate_buffer(nbytes)
    target = memoryview(buffer).cast("B")
    position = 0
    for part in parts:
        target[position : position + len(part)] = part
        position += len(part)
    return buffer


def read(buffer: pa.Buffer) -> pa.Table:
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
        BadBodyError: The bytes are no valid stream, end early, or hold another number of rows.
        TooLargeError: A limit is exceeded.
    """
    shape = scan(buffer, max_rows=max_rows, max_bytes=max_bytes, rows=rows, allow_compression=allow_compression)
    try:
        table = read(buffer)
        if validate:
            _validate(table, max_bytes, stored_bytes=shape.expanded_bytes)
    except TooLargeError:
        raise
    except Exception as exc:
        # Whatever the decoder raises on hostile bytes (seen: UnicodeDecodeError, OverflowError) is one kind of failure.
        raise BadBodyError(f"The body is not a valid Arrow stream ({type(exc).__name__}).", hint=_AGAIN) from None
    if table.num_rows != shape.rows:
        raise BadBodyError(f"The body holds {table.num_rows} rows where {shape.rows} were declared.", hint=_AGAIN)
    return table


def _validate(table: pa.Table, max_bytes: int, *, stored_bytes: int) -> None:
    # Validation reads every byte that a view shows, and a thousand views can show the same megabyte: so each array is weighed
    # before it is read, while what is weighed is still in the processor's cache.
    growth = Growth(max_bytes, stored_bytes=stored_bytes)
    try:
        validate_values(table, growth.add)
    except MayBeTooLarge:
        check_expanded(table, max_bytes, stored_bytes=stored_bytes)
        validate_values(table)


_AGAIN: Final = "Nothing was kept; fetch it again."


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """``dtype`` with string and binary views replaced by ``large_string`` and ``large_binary``, at any depth."""
    if dtype == pa.string_view():
        return pa.large_string()
    if dtype == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_struct(dtype):
        return pa.struct([_plain_field(dtype.field(i)) for i in range(dtype.num_fields)])
    if pa.types.is_map(dtype):
        return pa.map_(_plain_field(dtype.key_field), _plain_field(dtype.item_field), dtype.keys_sorted)
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(_plain_field(dtype.value_field), dtype.list_size)
    if pa.types.is_large_list(dtype):
        return pa.large_list(_plain_field(dtype.value_field))
    if pa.types.is_list(dtype):
        return pa.list_(_plain_field(dtype.value_field))
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, plain_type(dtype.value_type), dtype.ordered)
    return dtype


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` for a peer that does not read views."""
    return pa.schema([_plain_field(field) for field in schema])
