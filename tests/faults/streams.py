"""Arrow streams to do harm with: written by pyarrow, then altered byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.ipc

END = b"\xff\xff\xff\xff\0\0\0\0"


def stream(table: pa.Table, chunk: int | None = None, **options: Any) -> bytes:
    """A stream as pyarrow writes it; options are those of ``pa.ipc.IpcWriteOptions``."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class Part:
    """Where one message is: its metadata from ``start`` to ``body``, its body from there to ``end``."""

    start: int
    body: int
    end: int


def parts(data: bytes) -> list[Part]:
    """The messages of a valid stream, its end mark left out."""

    def walk() -> Iterator[Part]:
        position = 0
        for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(data)):
            start = position + 8
            body = start + struct.unpack_from("<i", data, position + 4)[0]
            position = body + message.body.size
            yield Part(start, body, position)

    return list(walk())


def patch(data: bytes, old: int, new: int, *, message: int = -1, count: int | None = None, code: str = "q") -> bytes:
    """Replace a number in the metadata of one message (the last) by another; it must be there (``count`` times)."""
    part = parts(data)[message]
    before, after = struct.pack(f"<{code}", old), struct.pack(f"<{code}", new)
    metadata = data[part.start : part.body]
    found = metadata.count(before)
    assert found == count if count is not None else found, f"{old} stands there {found} times"
    return data[: part.start] + metadata.replace(before, after) + data[part.body :]


def splice(data: bytes, message: int, times: int) -> bytes:
    """Repeat one message."""
    part = parts(data)[message]
    return data[: part.start - 8] + data[part.start - 8 : part.end] * times + data[part.end :]
