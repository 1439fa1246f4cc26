"""Bodies of messages at multiples of 64 bytes, each of their buffers too, as Arrow's specification recommends.

Arrow's own writer aligns to 8. A reader that needs more copies what lies otherwise: Polars every column of decimals, whose
values are 16 bytes wide (0.1 s for the four of TPC-H's lineitem, which is a tenth of its way over HTTP and all of it where it is
mapped). So offsets are rewritten in the metadata that the writer made, and no byte of a buffer is touched.

Format: https://arrow.apache.org/docs/format/Columnar.html#buffer-alignment-and-padding
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

import numpy as np

from framewire.arrow.layout import batch_layout

ALIGNMENT: Final = 64
_ZEROS: Final = memoryview(bytes(ALIGNMENT))
_FRAME: Final = Struct("<Ii")
_I64: Final = Struct("<q")
_CONTINUATION: Final = 0xFFFFFFFF


def align(parts: Sequence[memoryview]) -> list[memoryview]:
    """An IPC stream with everything aligned.

    Args:
        parts: As pyarrow's stream writer writes them: the marker, length and metadata of each message, then each buffer that is
            not empty and the zeros behind it, every piece on its own.

    Returns:
        The same stream, the same buffers, other offsets.
    """
    made: list[memoryview] = []
    position = 0
    waiting = iter([part for part in parts if len(part)])
    for marker in waiting:
        length = _I64.unpack(bytes(marker) + bytes(next(waiting)))[0] >> 32
        if not length:
            made.append(memoryview(_FRAME.pack(_CONTINUATION, 0)))
            break
        metadata = _exactly(waiting, length)
        body: list[memoryview] = []
        if made:  # the first message is the schema, which has no body
            metadata, body = _aligned(metadata, waiting)
        # What lies behind the message's metadata is padding to its reader.
        metadata += bytes(-(position + _FRAME.size + len(metadata)) % ALIGNMENT)
        made += [memoryview(_FRAME.pack(_CONTINUATION, len(metadata)) + metadata), *body]
        position += _FRAME.size + len(metadata) + sum(map(len, body))
    return made


def _exactly(waiting: Iterator[memoryview], nbytes: int) -> bytes:
    got = bytes(next(waiting))
    while len(got) < nbytes:
        got += next(waiting)
    return got


def _aligned(metadata: bytes, waiting: Iterator[memoryview]) -> tuple[bytes, list[memoryview]]:
    """A batch's metadata with other offsets, and its body's parts."""
    layout = batch_layout(metadata)
    if not layout.body_length_at:  # a body of no bytes
        return metadata, []
    buffers = layout.buffers.copy()
    sizes = buffers[:, 1]
    padded = (sizes + (ALIGNMENT - 1)) & ~np.int64(ALIGNMENT - 1)
    ends = np.cumsum(padded)
    buffers[:, 0] = ends - padded
    altered = bytearray(metadata)
    altered[layout.buffers_at : layout.buffers_at + buffers.nbytes] = buffers.tobytes()
    _I64.pack_into(altered, layout.body_length_at, int(ends[-1]))
    parts: list[memoryview] = []
    for length in sizes[sizes > 0].tolist():
        part = next(waiting)
        if len(part) != length:
            raise AssertionError(f"pyarrow wrote {len(part)} bytes where it declared {length}")
        parts.append(part)
        if length % 8:
            next(waiting)  # the writer's own padding
        if length % ALIGNMENT:
            parts.append(_ZEROS[: -length % ALIGNMENT])
    return bytes(altered), parts
