"""Arrow IPC streams written: gather lists, one-buffer bodies, and checksums.

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
from framewire.arrow.align import align


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
    with pa.PythonFile(sink, mode="w") as file, pa.ipc.new_stream(file, table.schema, options=options) as writer:
        for batch in table.to_batches():
            if batch.num_rows:  # a filter may leave thousands of empty ones, which a reader has to take up one by one
                writer.write_batch(batch)
    # A reader that needs small ones aligned copies them in less time than aligning them takes here.
    large = table.nbytes >= _LARGE_BYTES
    return tuple(align(sink.parts) if large else [part for part in sink.parts if len(part)])


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
