"""Arrow IPC streams read: our own without a copy, and those that came from outside, checked in a fixed order."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.ipc

from framewire.arrow.expanded import ExpandedSize, NeedsExactCount, check_expanded
from framewire.arrow.framing import scan
from framewire.arrow.validity import validate as validate_values
from framewire.errors import BadBodyError, TooLargeError


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
    growth = ExpandedSize(max_bytes, stored_bytes=stored_bytes)
    try:
        validate_values(table, growth.add)
    except NeedsExactCount:
        check_expanded(table, max_bytes, stored_bytes=stored_bytes)
        validate_values(table)


_AGAIN: Final = "Nothing was kept; fetch it again."
