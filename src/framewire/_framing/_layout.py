"""The schema of a stream -> which nodes and buffers each of its batches must have, and how long they must be.

Arrow writes a batch as two flat lists in the schema's depth-first order: a node (length, nulls) for each field, and the
buffers of all fields. ``Layout`` holds what both must look like, as columns of numbers, so that one vectorised pass can check
all batches of a stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from framewire._framing._flatbuffer import Table, malformed, refused
from framewire.errors import TooLargeError

MAX_DEPTH: Final = 64
"""Levels of nesting: what Arrow's own reader accepts."""
_MIN_TABLE_BYTES: Final = 16
"""What an honest writer needs at least for a field with its type, or for a key with its value."""
_MAX_ZONE_BYTES: Final = 64
"""Twice the longest name in the time zone database."""
_EXTENSION: Final = "ARROW:extension:"

# Roles of buffers, for the rules that depend on them.
VALIDITY, OFFSETS, DATA, VARIADIC = range(4)
FREE: Final = -1
"""Times of a node whose length its parent does not set: the items of a list."""


@dataclass
class Layout:
    """What each batch of one schema must hold. Node 0 is the batch itself; the schema's fields follow, depth first.

    Attributes:
        names: Column (or path) of each node, for messages.
        parents: Node that sets the length of each node.
        times: Length of a node for each row of its parent, or ``FREE``.
        weightless: Nodes that have rows but no bytes for them (null type, no fields, width 0).
        nodes: Node of each buffer.
        bits: Bits that a buffer holds for each row of its node.
        roles: ``VALIDITY``, ``OFFSETS``, ``DATA`` or ``VARIADIC``: any number of buffers of any length, for views.
    """

    names: list[str] = field(default_factory=lambda: [""])
    parents: list[int] = field(default_factory=lambda: [0])
    times: list[int] = field(default_factory=lambda: [1])
    weightless: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)
    roles: list[int] = field(default_factory=list)

    def node(self, name: str, parent: int, times: int) -> int:
        """Add a node; returns its number."""
        self.names.append(name)
        self.parents.append(parent)
        self.times.append(times)
        return len(self.names) - 1

    def buffer(self, node: int, bits: int, role: int) -> None:
        """Add a buffer of the newest node."""
        self.nodes.append(node)
        self.bits.append(bits)
        self.roles.append(role)


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


_TypeReader: TypeAlias = Callable[[Table | None, Layout, int, int], list[int]]
"""Adds the buffers of a node by its type, given the number of its children; returns, for each child, how many rows it has for one of the node's."""


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

    Offsets may lead to one place many times, so that a small message can describe an endless schema: each field, name and key
    is paid for with the bytes that an honest writer needs for it.
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
        read = _TYPES.get(table.u8(2))
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

    def _dictionary(self, encoding: Table, read: _TypeReader, kind: Table, node: int, children: int) -> None:
        """A dictionary field: its buffers are the indices; its type and children are those of the dictionary's values."""
        path = self._layout.names[node]
        values = Layout()
        below = read(kind, values, values.node(path, 0, 1), children)
        if children or below or values.weightless:
            raise refused(f"Column {path!r} is a dictionary of values that framewire does not carry.")
        known = self._dictionaries.setdefault(encoding.i64(0), values)
        if (known.bits, known.roles) != (values.bits, values.roles):
            raise malformed(f"column {path!r} shares a dictionary with another type")
        _integer(encoding.table(1), self._layout, node, 0)

    def _refuse_extension(self, table: Table, path: str) -> None:
        """Extension types would run code that this process registered for them."""
        if not (entries := table.tables(6)):
            return
        self._pay(_MIN_TABLE_BYTES * len(entries))
        for position in entries:
            if self._text(table.at(position), 0).startswith(_EXTENSION):
                raise refused(f"Column {path!r} has an extension type, which framewire does not carry.")


# --- types ---------------------------------------------------------------------------------------------------------------



def _fixed(layout: Layout, node: int, bits: int, *allowed: int) -> list[int]:
    if bits not in allowed:
        raise malformed(f"column {layout.names[node]!r} has a width of {bits} bits")
    layout.buffer(node, 1, VALIDITY)
    layout.buffer(node, bits, DATA)
    return []


def _null(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    layout.weightless.append(node)
    return []


def _integer(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    # Indices of a dictionary are int32 when their type is not written.
    return _fixed(layout, node, kind.i32(0) if kind else 32, 8, 16, 32, 64)


def _float(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    return _fixed(layout, node, 16 << kind.i16(0) if kind and 0 <= kind.i16(0) <= 2 else 0, 16, 32, 64)


def _bool(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    return _fixed(layout, node, 1, 1)


def _decimal(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    return _fixed(layout, node, kind.i32(2, 128) if kind else 0, 32, 64, 128, 256)


def _date(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    return _fixed(layout, node, 32 if kind and kind.i16(0, 1) == 0 else 64, 32, 64)


def _time(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    return _fixed(layout, node, kind.i32(1, 32) if kind else 0, 32, 64)


def _timestamp(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    zone = kind.vector(1, 1) if kind else memoryview(b"")
    # Zones are ASCII, and pyarrow decodes them when they are looked at: far from where its errors are expected.
    if len(zone) > _MAX_ZONE_BYTES or not bytes(zone).isascii():
        raise refused(f"Column {layout.names[node]!r} has a time zone that is no name.")
    return _fixed(layout, node, 64, 64)


def _sixty_four(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    return _fixed(layout, node, 64, 64)


def _fixed_size_binary(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    width = kind.i32(0) if kind else -1
    if width == 0:
        layout.weightless.append(node)
    return _fixed(layout, node, 8 * width, *([8 * width] if width >= 0 else []))


def _text(bits: int) -> _TypeReader:
    def read(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
        layout.buffer(node, 1, VALIDITY)
        layout.buffer(node, bits, OFFSETS)
        layout.buffer(node, 0, DATA)
        return []

    return read


def _view(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    layout.buffer(node, 1, VALIDITY)
    layout.buffer(node, 128, DATA)
    layout.buffer(node, 0, VARIADIC)
    return []


def _list(bits: int) -> _TypeReader:
    def read(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
        layout.buffer(node, 1, VALIDITY)
        layout.buffer(node, bits, OFFSETS)
        return [FREE]

    return read


def _fixed_size_list(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    size = kind.i32(0) if kind else -1
    if size < 0:
        raise malformed(f"column {layout.names[node]!r} has lists of {size} items")
    if size == 0:
        layout.weightless.append(node)
    layout.buffer(node, 1, VALIDITY)
    return [size]


def _struct(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    if children == 0:
        layout.weightless.append(node)
    layout.buffer(node, 1, VALIDITY)
    return [1] * children


_TYPES: Final[dict[int, _TypeReader]] = {
    1: _null,
    2: _integer,
    3: _float,
    4: _text(32),
    5: _text(32),
    6: _bool,
    7: _decimal,
    8: _date,
    9: _time,
    10: _timestamp,
    12: _list(32),
    13: _struct,
    15: _fixed_size_binary,
    16: _fixed_size_list,
    17: _list(32),  # map
    18: _sixty_four,  # duration
    19: _text(64),
    20: _text(64),
    21: _list(64),
    23: _view,
    24: _view,
}
"""The types of ``Schema.fbs`` that framewire carries. Not 11 (interval), 14 (union), 22 (run-end encoded), 25 and 26 (list views)."""
