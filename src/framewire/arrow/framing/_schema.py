"""A stream's schema message -> the layouts of its batches and dictionaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from framewire.arrow.framing._flatbuffer import Table, malformed, refused
from framewire.arrow.framing._layout import TYPES, Layout, TypeReader, integer
from framewire.errors import TooLargeError

MAX_DEPTH: Final = 64
"""Levels of nesting: what Arrow's own reader accepts."""
_MIN_TABLE_BYTES: Final = 16
"""What an honest writer needs at least for a field with its type, or for a key with its value."""
_EXTENSION: Final = "ARROW:extension:"


@dataclass(frozen=True)
class Schema:
    """A stream's schema as the scan needs it.

    Attributes:
        batches: Layout of record batches.
        dictionaries: Layout of the values of each dictionary, by its id.
        columns: Columns of the table.
    """

    batches: Layout
    dictionaries: dict[int, Layout]
    columns: int


class _Item(NamedTuple):
    """A field still to be read."""

    position: int
    path: str
    parent: int
    times: int
    depth: int


def read_schema(message: Table, schema: Table, *, nbytes: int, max_fields: int) -> Schema:
    """Read a schema message.

    Args:
        message: Any table of the message (they share their bytes).
        schema: The schema's table.
        nbytes: Bytes of the message's metadata.
        max_fields: Most fields, nested ones counted.

    Raises:
        BadBodyError: It is malformed, or has a type that framewire does not carry.
        TooLargeError: It has too many fields.
    """
    if schema.i16(0) != 0:
        raise refused("The Arrow stream is in big-endian order, which framewire does not read.")
    top = schema.tables(1)
    return _Reader(message, nbytes, max_fields).read(top)


class _Reader:
    """Reads fields without recursion, and no byte of the metadata more often than it is there.

    Offsets may lead to one place many times, so that a small message can describe an endless schema: each field, name
    and key is paid for with the bytes that an honest writer needs for it.
    """

    def __init__(self, message: Table, nbytes: int, max_fields: int) -> None:
        self._message = message
        self._bytes_left = nbytes
        self._fields_left = self._max_fields = max_fields
        self._layout = Layout()
        self._dictionaries: dict[int, Layout] = {}

    def read(self, top: list[int]) -> Schema:
        self._count(top)
        if not top:
            self._layout.weightless.append(0)
        stack = [_Item(position, "", 0, 1, 0) for position in reversed(top)]
        while stack:
            stack.extend(reversed(self._field(stack.pop())))
        return Schema(self._layout, self._dictionaries, len(top))

    def _count(self, fields: list[int]) -> None:
        self._fields_left -= len(fields)
        if self._fields_left < 0:
            raise TooLargeError(f"The body has more than {self._max_fields} columns.", hint="Ask for fewer columns.")
        self._pay(_MIN_TABLE_BYTES * len(fields))

    def _pay(self, nbytes: int) -> None:
        self._bytes_left -= nbytes
        if self._bytes_left < 0:
            raise malformed("its schema has more fields than it has room for")

    def _text(self, table: Table, slot: int) -> str:
        text = table.vector(slot, 1)
        self._pay(len(text))
        try:
            return str(text, "utf-8")
        except UnicodeDecodeError:
            raise malformed("a name is not UTF-8") from None

    def _field(self, item: _Item) -> list[_Item]:
        """Add one field to the layout; returns its children."""
        table = self._message.at(item.position)
        name = self._text(table, 0)
        # Cut, since a path grows with its depth.
        path = (f"{item.path}.{name}" if item.depth else name)[:200]
        if item.depth > MAX_DEPTH:
            raise refused(f"A column is nested deeper than {MAX_DEPTH} levels.")
        self._refuse_extension(table, path)
        read = TYPES.get(table.u8(2))
        kind = table.table(3)
        if read is None or kind is None:
            raise refused(f"Column {path!r} has a type that framewire does not carry.")
        children = table.tables(5)
        self._count(children)
        node = self._layout.node(path, item.parent, item.times)
        encoding = table.table(4)
        if encoding is not None:
            self._dictionary(encoding, read, kind, node, len(children))
            return []
        times = read(kind, self._layout, node, len(children))
        if len(times) != len(children):
            raise malformed(f"column {path!r} has {len(children)} children")
        return [_Item(child, path, node, count, item.depth + 1) for child, count in zip(children, times, strict=True)]

    def _dictionary(self, encoding: Table, read: TypeReader, kind: Table, node: int, children: int) -> None:
        """A dictionary field: its own buffers are the indices; its type is that of the dictionary's values."""
        path = self._layout.names[node]
        values = Layout()
        below = read(kind, values, values.node(path, 0, 1), children)
        if children or below or values.weightless:
            raise refused(f"Column {path!r} is a dictionary of values that framewire does not carry.")
        known = self._dictionaries.setdefault(encoding.i64(0), values)
        if (known.bits, known.roles) != (values.bits, values.roles):
            raise malformed(f"column {path!r} shares a dictionary with another type")
        integer(encoding.table(1), self._layout, node, 0)

    def _refuse_extension(self, table: Table, path: str) -> None:
        """Extension types would run code that this process registered for them."""
        if not (entries := table.tables(6)):
            return
        self._pay(_MIN_TABLE_BYTES * len(entries))
        for position in entries:
            if self._text(table.at(position), 0).startswith(_EXTENSION):
                raise refused(f"Column {path!r} has an extension type, which framewire does not carry.")
