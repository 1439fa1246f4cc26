"""A stream of one small batch: the same rules as ``Batches.check``, number by number.

A few dozen numbers are looked at faster one by one than by as many calls of numpy (15 microseconds, not 55: a twentieth of a
fetch of a hundred rows). This only ever says that a batch is good; whatever it does not take, the full check judges and names.
"""

from __future__ import annotations

from typing import Final

from framewire.arrow.framing._layout import FREE, OFFSETS, VALIDITY, VARIADIC, Layout

MAX_BUFFERS: Final = 256
"""Buffers up to which one by one is faster."""


def bytes_if_good(
    layout: Layout, rows: int, nodes: memoryview, buffers: memoryview, variadic: memoryview, *, body: int, max_rows: int
) -> int | None:
    """Check one uncompressed batch.

    Args:
        layout: What it must hold.
        rows: Its rows.
        nodes: Length and nulls of each node of the layout but the first (int64 pairs).
        buffers: Offset and size of each buffer (int64 pairs), as many as the layout and ``variadic`` say.
        variadic: Data buffers of each column of views (int64).
        body: Bytes of its body.
        max_rows: Most rows of a node.

    Returns:
        Its buffers' bytes and a byte for each value of a column that has none; None where anything is not as it should be.
    """
    lengths, nulls = [rows], [0]
    pairs = iter(nodes.cast("q").tolist())
    for length, null, parent, times in zip(pairs, pairs, layout.parents[1:], layout.times[1:], strict=True):
        if not 0 <= null <= length <= max_rows or (times != FREE and length != lengths[parent] * times):
            return None
        lengths.append(length)
        nulls.append(null)
    total = sum([lengths[node] for node in layout.weightless])
    end = 0
    places, counts = iter(buffers.cast("q").tolist()), iter(variadic.cast("q").tolist())
    for node, bits, role in zip(layout.nodes, layout.bits, layout.roles, strict=True):
        length = lengths[node]
        for _ in range(next(counts)) if role == VARIADIC else _ONCE:
            offset, size = next(places), next(places)
            if offset < 0 or size < 0 or offset + size > body:
                return None
            if size:
                if offset % 8 or offset < end:
                    return None
                end = offset + size
                total += size
            # Without nulls there need be no bitmap, and without rows no offsets.
            if 8 * size < (length + (role == OFFSETS)) * bits and (
                size or (nulls[node] if role == VALIDITY else length)
            ):
                return None
    return total


_ONCE: Final = (0,)
