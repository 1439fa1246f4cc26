"""The layout of a batch: where its buffers lie and how long its columns are, from the metadata of its IPC message.

For metadata that Arrow wrote or has verified (``pyarrow.ipc.MessageReader`` verifies each message): offsets are followed as they
are. Format: https://github.com/apache/arrow/tree/main/format (``Message.fbs``)
"""

from __future__ import annotations

from struct import Struct, error
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

_U16: Final = Struct("<H").unpack_from
_I32: Final = Struct("<i").unpack_from
_U32: Final = Struct("<I").unpack_from
_I64: Final = Struct("<q").unpack_from
_DICTIONARY: Final = 2
"""``MessageHeader.DictionaryBatch``, whose table holds the batch of its values."""
# Slots of the tables, in the order of Message.fbs.
_HEADER_TYPE, _HEADER, _BODY_LENGTH, _MESSAGE_METADATA = 1, 2, 3, 4
_ID, _DATA, _IS_DELTA = 0, 1, 2
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3


class BatchLayout(NamedTuple):
    """What the metadata of a record batch or of a dictionary batch declares.

    Attributes:
        rows: Rows.
        nodes: int64 (n, 2): rows and nulls of each field, depth first.
        buffers: int64 (n, 2): offset in the body and length of each buffer, in bytes.
        buffers_at: Position of ``buffers`` in the metadata.
        body_length_at: Position in the metadata of the body's length (int64).
        is_compressed: Whether the buffers are compressed.
        dictionary: Id of the dictionary; None for a record batch.
        is_delta: Whether the values are added to those that the dictionary has.
    """

    rows: int
    nodes: _Ints
    buffers: _Ints
    buffers_at: int
    body_length_at: int
    is_compressed: bool
    dictionary: int | None
    is_delta: bool


def batch_layout(metadata: bytes | memoryview) -> BatchLayout:
    """Read the layout of a batch.

    Args:
        metadata: Flatbuffer of a record batch's or a dictionary batch's message.

    Raises:
        struct.error: An offset leads out of the metadata, which was not verified.
    """
    message = _U32(metadata, 0)[0]
    batch = _table(metadata, message, _HEADER)
    dictionary, is_delta = None, False
    if metadata[_slot(metadata, message, _HEADER_TYPE)] == _DICTIONARY:
        dictionary = _i64(metadata, batch, _ID)
        delta_at = _slot(metadata, batch, _IS_DELTA)
        is_delta = bool(delta_at and metadata[delta_at])
        batch = _table(metadata, batch, _DATA)
    buffers, buffers_at = _pairs(metadata, batch, _BUFFERS)
    return BatchLayout(
        rows=_i64(metadata, batch, _LENGTH),
        nodes=_pairs(metadata, batch, _NODES)[0],
        buffers=buffers,
        buffers_at=buffers_at,
        body_length_at=_slot(metadata, message, _BODY_LENGTH),
        is_compressed=bool(_slot(metadata, batch, _COMPRESSION)),
        dictionary=dictionary,
        is_delta=is_delta,
    )


def has_own_metadata(metadata: memoryview) -> bool:
    """Whether a message has custom metadata, which Arrow copies as soon as it has verified the message."""
    try:
        return bool(_slot(metadata, _U32(metadata, 0)[0], _MESSAGE_METADATA))
    except error:
        return False  # an offset leads out of it, so that Arrow refuses it


def _slot(data: Any, table: int, slot: int) -> int:
    """Position of a table's field, or 0 where it is absent and has its default."""
    vtable = table - _I32(data, table)[0]
    entry = 4 + 2 * slot
    offset: int = _U16(data, vtable + entry)[0] if entry < _U16(data, vtable)[0] else 0
    return table + offset if offset else 0


def _table(data: Any, table: int, slot: int) -> int:
    """Position of the table or vector that a field points to."""
    at = _slot(data, table, slot)
    return at + int(_U32(data, at)[0])


def _i64(data: Any, table: int, slot: int) -> int:
    at = _slot(data, table, slot)
    return int(_I64(data, at)[0]) if at else 0


def _pairs(data: Any, table: int, slot: int) -> tuple[_Ints, int]:
    """A vector of structs of two int64, and its position."""
    if not _slot(data, table, slot):
        return np.empty((0, 2), np.int64), 0
    vector = _table(data, table, slot)
    count = _U32(data, vector)[0]
    return np.frombuffer(data, "<i8", 2 * count, vector + 4).reshape(-1, 2), vector + 4
