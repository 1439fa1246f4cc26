"""The batches of one schema, gathered while the stream is walked and checked all at once.

What a batch declares is two lists of numbers, so a stream of any number of batches is checked in a few dozen numpy
calls. Products are compared as floats: they cannot overflow, and are exact as far as any buffer's length goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from framewire.arrow.framing._flatbuffer import Table, malformed, refused
from framewire.arrow.framing._layout import VARIADIC, Layout
from framewire.arrow.framing._single import MAX_BUFFERS, bytes_if_good
from framewire.errors import TooLargeError

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

_NODE_BYTES: Final = 16
_BUFFER_BYTES: Final = 16
_PREFIX_BYTES: Final = 8
"""Before each compressed buffer: its length once decompressed, or -1 when it is not compressed after all."""


@dataclass(frozen=True)
class Limits:
    """See ``scan``."""

    max_rows: int
    max_bytes: int
    allow_compression: bool


@dataclass
class Batches:
    """All batches of one layout, in order.

    Attributes:
        layout: What each must hold.
        rows: Declared rows of each batch.
        deltas: Whether each adds to the dictionary before it.
        compressed: Whether each has compressed buffers.
    """

    layout: Layout
    rows: list[int] = field(default_factory=list)
    deltas: list[bool] = field(default_factory=list)
    compressed: list[bool] = field(default_factory=list)
    _bodies: list[tuple[int, int]] = field(default_factory=list)
    _nodes: list[memoryview] = field(default_factory=list)
    _buffers: list[memoryview] = field(default_factory=list)
    _variadic: list[memoryview] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._views = self.layout.roles.count(VARIADIC)
        self._fixed = len(self.layout.roles) - self._views

    def add(self, batch: Table, start: int, size: int, limits: Limits, *, delta: bool = False) -> int:
        """Take up one batch whose body is ``size`` bytes at ``start``; returns its rows.

        Raises:
            BadBodyError: Its lists are not those of the schema, or it is compressed where that is not allowed.
        """
        rows = batch.i64(0)
        if rows < 0:
            raise malformed("a batch has fewer than no rows")
        compression = batch.table(3)
        if compression is not None:
            if not limits.allow_compression:
                raise refused("The Arrow stream is compressed, which was not asked for.")
            if compression.u8(0) > 1 or compression.u8(1) != 0:
                raise refused("The Arrow stream is compressed in an unknown way.")
        nodes, buffers, variadic = batch.vector(1, _NODE_BYTES), batch.vector(2, _BUFFER_BYTES), batch.vector(4, 8)
        counts = variadic.cast("q")
        if len(nodes) != _NODE_BYTES * (len(self.layout.names) - 1) or len(variadic) != 8 * self._views:
            raise malformed("a batch has other columns than the schema")
        if len(buffers) != _BUFFER_BYTES * (self._fixed + sum(counts)) or min(counts, default=0) < 0:
            raise malformed("a batch has another number of buffers than its columns")
        self.rows.append(rows)
        self.deltas.append(delta)
        self.compressed.append(compression is not None)
        self._bodies.append((start, size))
        self._nodes.append(nodes)
        self._buffers.append(buffers)
        self._variadic.append(variadic)
        return rows

    def check(self, stream: memoryview, limits: Limits) -> int:
        """Check what all batches declare; returns the bytes that they come to once decoded.

        Raises:
            BadBodyError: Lengths, counts or places contradict each other.
            TooLargeError: A column alone comes to more than ``limits.max_bytes``.
        """
        if not self.rows:
            return 0
        if (good := self._single(limits)) is not None:
            return good
        lengths, nulls = self._lengths(limits)
        weight = sum(int(lengths[:, node].sum(dtype=np.float64)) for node in self.layout.weightless)
        batch, template = self._templates()
        if not len(template):
            return weight
        offsets, sizes = _pairs(self._buffers, (len(template),))
        starts, bodies = np.array(self._bodies, np.int64).T[:, batch]
        _check_places(batch, offsets, sizes, bodies)
        plain = sizes
        if any(self.compressed):
            plain = _plain_sizes(stream, starts + offsets, sizes, np.array(self.compressed)[batch])
        total = int(plain.sum(dtype=np.float64)) + weight
        self._check_sizes(lengths, nulls, batch, template, plain)
        return total + (self._joined(np.bincount(batch, plain, len(self.rows))) if any(self.deltas) else 0)

    def _single(self, limits: Limits) -> int | None:
        """The bytes of a small batch alone, where it is plainly good."""
        if (
            len(self.rows) != 1
            or self.compressed[0]
            or self.deltas[0]
            or len(self._buffers[0]) > _BUFFER_BYTES * MAX_BUFFERS
        ):
            return None
        return bytes_if_good(
            self.layout,
            self.rows[0],
            self._nodes[0],
            self._buffers[0],
            self._variadic[0],
            body=self._bodies[0][1],
            max_rows=8 * limits.max_bytes,
        )

    def _lengths(self, limits: Limits) -> tuple[_Ints, _Ints]:
        """Length and nulls of each node (columns) of each batch (rows); node 0 is the batch itself."""
        columns = self.layout.columns
        pairs = np.empty((len(self.rows), len(self.layout.names), 2), np.int64)
        pairs[:, 0, 0], pairs[:, 0, 1] = self.rows, 0
        pairs[:, 1:] = np.frombuffer(b"".join(self._nodes), "<i8").reshape(len(self.rows), -1, 2)
        lengths, nulls = pairs[..., 0], pairs[..., 1]
        wrong = (nulls < 0) | (nulls > lengths)
        if wrong.any():
            raise malformed(f"{self._column(wrong)} has more nulls than rows")
        wrong = (lengths != lengths[:, columns.parents] * columns.times) & ~columns.free
        if wrong.any():
            raise malformed(f"{self._column(wrong)} has another number of rows than its table")
        # A row takes a bit at least, or is weighed as a byte.
        if lengths.shape[1] > 1 and (most := int(lengths[:, 1:].max())) > 8 * limits.max_bytes:
            raise too_large(most // 8, limits)
        return lengths, nulls

    def _templates(self) -> tuple[_Ints, _Ints]:
        """For each buffer of the stream: its batch, and which of the layout's buffers it is."""
        count, roles = len(self.rows), len(self.layout.roles)
        kinds = np.tile(np.arange(roles), count)
        batches = np.repeat(np.arange(count), roles)
        if not self._views:
            return batches, kinds
        times = np.ones(len(kinds), np.int64)
        times[self.layout.columns.is_variadic[kinds]] = np.frombuffer(b"".join(self._variadic), "<i8")
        return np.repeat(batches, times), np.repeat(kinds, times)

    def _check_sizes(self, lengths: _Ints, nulls: _Ints, batch: _Ints, template: _Ints, sizes: _Ints) -> None:
        """Each buffer holds its node's rows."""
        columns = self.layout.columns
        node = columns.nodes[template]
        rows = lengths[batch, node]
        # Both factors are exact, and so is a product below 2^53; the length of any buffer is.
        short = sizes < np.ceil((rows + columns.is_offsets[template]) * columns.bytes_per_row[template])
        if not short.any():
            return
        # Without nulls there need be no bitmap, and without rows no offsets.
        unneeded = np.where(columns.is_validity[template], nulls[batch, node], rows) == 0
        short &= (sizes > 0) | ~unneeded
        if short.any():
            name = self.layout.names[int(node[np.argmax(short)])]
            raise malformed(f"column {name!r} has fewer bytes than its rows need")

    def _column(self, wrong: _Bools) -> str:
        return f"column {self.layout.names[int(np.argmax(wrong.any(axis=0)))]!r}"

    def _joined(self, sizes: npt.NDArray[Any]) -> int:
        """Bytes of dictionaries that deltas are joined to: each makes a new one of all that came before."""
        joined, current = 0, 0.0
        for size, delta in zip(sizes.tolist(), self.deltas, strict=True):
            current = current + size if delta else size
            joined += int(current) if delta else 0
        return joined


def _pairs(parts: list[memoryview], shape: tuple[int, ...]) -> tuple[_Ints, _Ints]:
    pairs: _Ints = np.frombuffer(b"".join(parts), "<i8").reshape(*shape, 2)
    return pairs[..., 0], pairs[..., 1]


def _check_places(batch: _Ints, offsets: _Ints, sizes: _Ints, bodies: _Ints) -> None:
    """Buffers lie inside their body, aligned, in order and apart: no byte can be used twice."""
    if ((offsets < 0) | (sizes < 0) | (offsets > bodies) | (sizes > bodies - offsets)).any():
        raise malformed("a buffer lies outside its batch")
    used: Any = sizes > 0
    batch, offsets, sizes = batch[used], offsets[used], sizes[used]
    if (offsets % 8).any():
        raise malformed("a buffer is not aligned")
    if ((offsets[1:] < offsets[:-1] + sizes[:-1]) & (batch[1:] == batch[:-1])).any():
        raise malformed("two buffers overlap")


def _plain_sizes(stream: memoryview, places: _Ints, sizes: _Ints, compressed: _Bools) -> _Ints:
    """Lengths of buffers once decompressed, as they declare them."""
    packed = compressed & (sizes > 0)
    if (packed & (sizes < _PREFIX_BYTES)).any():
        raise malformed("a compressed buffer is too short")
    declared = np.frombuffer(stream, "<i8")[places[packed] // 8]
    if (declared < -1).any():
        raise malformed("a compressed buffer declares less than nothing")
    plain = sizes.copy()
    plain[packed] = np.where(declared == -1, sizes[packed] - _PREFIX_BYTES, declared)
    return plain


def too_large(nbytes: int, limits: Limits) -> TooLargeError:
    """The error for a stream that would come to ``nbytes``."""
    return TooLargeError(
        f"The body holds {nbytes} bytes once decoded, above {limits.max_bytes}.",
        hint="Raise FRAMEWIRE_MAX_BODY_BYTES or select fewer rows.",
    )
