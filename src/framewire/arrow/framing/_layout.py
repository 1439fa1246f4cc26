"""Which nodes and buffers each batch of a schema must have, and how long they must be.

Arrow writes a batch as two flat lists in the schema's depth-first order: a node (length, nulls) for each field, and the
buffers of all fields. ``Layout`` holds what both must look like, as columns of numbers, so that one vectorised pass can
check all batches of a stream; ``TYPES`` says what each type adds to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from framewire.arrow.framing._flatbuffer import Table, malformed, refused

_MAX_ZONE_BYTES: Final = 64
"""Twice the longest name in the time zone database."""

# Roles of buffers, for the rules that depend on them.
VALIDITY, OFFSETS, DATA, VARIADIC = range(4)
FREE: Final = -1
"""Times of a node whose length its parent does not set: the items of a list."""


class Columns(NamedTuple):
    """A finished layout as arrays: by node ``parents``, ``times`` and ``free``, the others by buffer."""

    parents: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    free: npt.NDArray[np.bool_]
    nodes: npt.NDArray[np.int64]
    bytes_per_row: npt.NDArray[np.float64]
    is_validity: npt.NDArray[np.bool_]
    is_variadic: npt.NDArray[np.bool_]
    is_offsets: npt.NDArray[np.float64]


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

    @cached_property
    def columns(self) -> Columns:
        """For the checks; taken when the schema has been read to its end, and kept with it."""
        times, roles = np.array(self.times), np.array(self.roles, np.int64)
        return Columns(
            parents=np.array(self.parents),
            times=times.astype(np.float64),
            free=times == FREE,
            nodes=np.array(self.nodes, np.int64),
            bytes_per_row=np.array(self.bits, np.float64) / 8,
            is_validity=roles == VALIDITY,
            is_variadic=roles == VARIADIC,
            is_offsets=(roles == OFFSETS).astype(np.float64),
        )

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


TypeReader: TypeAlias = Callable[[Table | None, Layout, int, int], list[int]]
"""Adds the buffers of a node by its type, given the number of its children; returns, for each child, how many rows it
has for one of the node's."""


# --- types ------------------------------------------------------------------------------------------------------------


def _fixed(layout: Layout, node: int, bits: int, *allowed: int) -> list[int]:
    if bits not in allowed:
        raise malformed(f"column {layout.names[node]!r} has a width of {bits} bits")
    layout.buffer(node, 1, VALIDITY)
    layout.buffer(node, bits, DATA)
    return []


def _null(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
    layout.weightless.append(node)
    return []


def integer(kind: Table | None, layout: Layout, node: int, children: int) -> list[int]:
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


def _text(bits: int) -> TypeReader:
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


def _list(bits: int) -> TypeReader:
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


TYPES: Final[dict[int, TypeReader]] = {
    1: _null,
    2: integer,
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
"""The types of ``Schema.fbs`` that framewire carries: not 11 (interval), 14 (union), 22 (run-end encoded), nor 25 and 26
(list views)."""
