"""A reader of flatbuffers that trusts no offset: the metadata of Arrow messages before Arrow sees it.

Only what the scan needs: tables, scalars and vectors. Offsets from a table to what it holds are unsigned, so they lead
forward and never in circles; the one signed offset, to a table's vtable, is checked by hand. What lies past the end
makes ``struct`` raise, which is the bounds check of every other read.
"""

from __future__ import annotations

from struct import Struct
from struct import error as PastTheEnd
from typing import Final

from framewire.errors import BadBodyError

__all__ = ["PastTheEnd", "Table", "malformed", "refused"]

_U16: Final = Struct("<H").unpack_from
_I16: Final = Struct("<h").unpack_from
_I32: Final = Struct("<i").unpack_from
_U32: Final = Struct("<I").unpack_from
_I64: Final = Struct("<q").unpack_from
_VTABLE: Final = Struct("<HH").unpack_from


def refused(text: str) -> BadBodyError:
    """The error for a body that is not taken."""
    return BadBodyError(text, hint="Nothing was kept; fetch it again.")


def malformed(what: str) -> BadBodyError:
    """The error for bytes that are not what Arrow's format says."""
    return refused(f"The Arrow stream is malformed: {what}.")


class Table:
    """One table of a flatbuffer. Slots count from 0 in the order of the schema file (``Message.fbs``, ``Schema.fbs``).

    Every read raises ``PastTheEnd`` or ``BadBodyError`` when it would leave the buffer.
    """

    __slots__ = ("_data", "_position", "_size", "_vtable", "_vtable_size")

    def __init__(self, data: memoryview, position: int) -> None:
        vtable = position - _I32(data, position)[0]
        if vtable < 0:
            raise malformed("a table points before its message")
        self._data = data
        self._position = position
        self._vtable = vtable
        self._vtable_size, self._size = _VTABLE(data, vtable)
        if vtable + self._vtable_size > len(data) or position + self._size > len(data):
            raise malformed("a table reaches past its message")

    @classmethod
    def root(cls, data: memoryview) -> Table:
        """The outermost table of a message's metadata."""
        return cls(data, _U32(data, 0)[0])

    def _place(self, slot: int, size: int) -> int:
        """Where a slot's value is, or 0 when it is absent (position 0 holds the root's offset, never a value)."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return 0
        offset: int = _U16(self._data, self._vtable + entry)[0]
        if offset and not 4 <= offset <= self._size - size:
            raise malformed("a field lies outside its table")
        return self._position + offset if offset else 0

    def u8(self, slot: int, default: int = 0) -> int:
        """An unsigned byte (a union's type, or a bool)."""
        place = self._place(slot, 1)
        return self._data[place] if place else default

    def i16(self, slot: int, default: int = 0) -> int:
        """A short."""
        place = self._place(slot, 2)
        return int(_I16(self._data, place)[0]) if place else default

    def i32(self, slot: int, default: int = 0) -> int:
        """An int."""
        place = self._place(slot, 4)
        return int(_I32(self._data, place)[0]) if place else default

    def i64(self, slot: int, default: int = 0) -> int:
        """A long."""
        place = self._place(slot, 8)
        return int(_I64(self._data, place)[0]) if place else default

    def _target(self, slot: int) -> int:
        place = self._place(slot, 4)
        return place + int(_U32(self._data, place)[0]) if place else 0

    def table(self, slot: int) -> Table | None:
        """A table that this one points to, or None when it is absent."""
        target = self._target(slot)
        return Table(self._data, target) if target else None

    def vector(self, slot: int, item_size: int) -> memoryview:
        """The bytes of a vector of scalars or structs; empty when it is absent."""
        place, size = self.vector_at(slot, item_size)
        return self._data[place : place + size]

    def vector_at(self, slot: int, item_size: int) -> tuple[int, int]:
        """Where those bytes are in the message, and how many."""
        target = self._target(slot)
        if not target:
            return 0, 0
        size = int(_U32(self._data, target)[0]) * item_size
        if target + 4 + size > len(self._data):
            raise malformed("a list reaches past its message")
        return target + 4, size

    def at_slot(self, slot: int, size: int) -> int:
        """Where a scalar of ``size`` bytes is in the message, or 0 when it is absent."""
        return self._place(slot, size)

    def tables(self, slot: int) -> list[int]:
        """Positions of the tables that a vector points to, each to be read with :meth:`at`."""
        items = self.vector(slot, 4)
        if not items:
            return []
        base = self._target(slot) + 4
        return [base + 4 * i + offset for i, offset in enumerate(items.cast("I"))]

    def at(self, position: int) -> Table:
        """The table at a position that :meth:`tables` gave."""
        return Table(self._data, position)
