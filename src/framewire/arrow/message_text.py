"""Bytes of the names, keys, values and time zones of an IPC message's metadata, each counted as often as it is referenced.

Flatbuffers are graphs: a thousand entries may lead to one text of a megabyte, and Arrow copies it for each. An honest writer stores
a text for each reference, so together they are no longer than the metadata. Fields are followed level by level, in numpy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

# Slots of the tables, in the order of Message.fbs and Schema.fbs.
_HEADER_TYPE, _HEADER, _MESSAGE_METADATA = 1, 2, 4
_FIELDS, _SCHEMA_METADATA = 1, 2
_NAME, _TYPE_KIND, _TYPE, _CHILDREN, _FIELD_METADATA = 0, 2, 3, 5, 6
_KEY, _VALUE = 0, 1
_ZONE: Final = 1
_SCHEMA: Final = 1
"""``MessageHeader.Schema``."""
_TIMESTAMP: Final = 10
"""``Type.Timestamp``, the one type that holds a text."""


def text_bytes(metadata: memoryview, limit: int) -> int:
    """Bytes of all texts that a message refers to; the count stops above ``limit``.

    Args:
        metadata: Flatbuffer of a message. Offsets of one that was not verified may lead anywhere in it.
        limit: Bytes.

    Raises:
        IndexError: An offset leads out of the metadata.
    """
    message = _Flatbuffer(metadata)
    pairs = [message.items(message.root, _MESSAGE_METADATA)]
    total = 0
    if message.bytes[message.slots(message.root, _HEADER_TYPE)].tolist() == [_SCHEMA]:
        schema = message.targets(message.root, _HEADER)
        pairs.append(message.items(schema, _SCHEMA_METADATA))
        fields = message.items(schema, _FIELDS)
        while len(fields) and total <= limit:
            total += message.text(fields, _NAME) + message.zones(fields)
            pairs.append(message.items(fields, _FIELD_METADATA))
            fields = message.items(fields, _CHILDREN)
    return total + sum(message.text(entries, slot) for entries in pairs for slot in (_KEY, _VALUE))


class _Flatbuffer:
    """Tables of a flatbuffer, many at once: positions go in, positions come out."""

    def __init__(self, metadata: memoryview) -> None:
        whole = len(metadata) // 4 * 4
        self.bytes: Any = np.frombuffer(metadata, np.uint8)
        self._u16, self._i32, self._u32 = (np.frombuffer(metadata[:whole], code) for code in ("<u2", "<i4", "<u4"))
        self.root = self._u32[:1].astype(np.int64)

    def slots(self, tables: _Ints, slot: int) -> _Ints:
        """Positions of one field of the tables that have it."""
        vtables = tables - self._i32[tables // 4]
        entry = 4 + 2 * slot
        tables, vtables = (part[entry < self._u16[vtables // 2]] for part in (tables, vtables))
        offsets = self._u16[(vtables + entry) // 2].astype(np.int64)
        found: _Ints = (tables + offsets)[offsets > 0]
        return found

    def targets(self, tables: _Ints, slot: int) -> _Ints:
        """Positions of the tables, vectors or texts that the field leads to."""
        at = self.slots(tables, slot)
        found: _Ints = at + self._u32[at // 4]
        return found

    def items(self, tables: _Ints, slot: int) -> _Ints:
        """Positions of the tables in the vectors that the field leads to."""
        vectors = self.targets(tables, slot)
        counts = self._u32[vectors // 4].astype(np.int64)
        if counts.sum() > len(self.bytes) * 8:  # more than Arrow's own verification follows
            raise IndexError
        firsts = np.repeat(vectors + 4 - 4 * (np.cumsum(counts) - counts), counts)
        at = firsts + 4 * np.arange(len(firsts))
        found: _Ints = at + self._u32[at // 4]
        return found

    def text(self, tables: _Ints, slot: int) -> int:
        """Bytes of the texts that the field leads to."""
        return int(self._u32[self.targets(tables, slot) // 4].sum(dtype=np.int64))

    def zones(self, fields: _Ints) -> int:
        """Bytes of the time zones of those fields that are timestamps."""
        kinds = self.slots(fields, _TYPE_KIND)
        if len(kinds) != len(fields):
            raise IndexError
        return self.text(self.targets(fields[self.bytes[kinds] == _TIMESTAMP], _TYPE), _ZONE)
