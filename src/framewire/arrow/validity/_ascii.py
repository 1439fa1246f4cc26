"""Whether bytes are ASCII, seen eight at a time and once for each buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

HIGH_BITS: Final = np.uint64(0x8080808080808080)
_BLOCK: Final = 1 << 18
"""Words looked at together: 2 MiB, so that threads seldom wait for the interpreter's lock."""


class Seen:
    """Answers of :func:`is_ascii`, kept for as long as the buffers that they are of are alive. Threads may share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def is_ascii(self, buffer: Any) -> bool:
        """Whether a ``pa.Buffer`` is ASCII."""
        key = (buffer.address, buffer.size)
        if key not in self._known:
            self._known[key] = is_ascii(buffer)
        return self._known[key]

    def are_ascii(self, buffers: Iterable[Any]) -> bool:
        """The same of several: those that lie side by side, as the data buffers of one column of a body do, at once."""
        return all(self.is_ascii(span) for span in _spans(buffers))


def _spans(buffers: Iterable[Any]) -> Iterator[Any]:
    """Buffers joined with their neighbours and the few bytes of padding between them.

    The bytes of a gap can be read: it is smaller than a page, so each of them shares its page with a byte of a neighbour.
    """
    start, end = 0, -_MAX_GAP
    for address, size in sorted((buffer.address, buffer.size) for buffer in buffers if buffer.size):
        if address - end >= _MAX_GAP:
            if end > start:
                yield pa.foreign_buffer(start, end - start)
            start = address
        end = max(end, address + size)
    if end > start:
        yield pa.foreign_buffer(start, end - start)


_MAX_GAP: Final = 64


def is_ascii(buffer: Any) -> bool:
    """Whether no byte of a buffer has its high bit set."""
    data = np.frombuffer(buffer, np.uint8) if len(memoryview(buffer)) else np.empty(0, np.uint8)
    whole = len(data) // 8 * 8
    words = data[:whole].view(np.uint64)
    for start in range(0, len(words), _BLOCK):
        if np.bitwise_or.reduce(words[start : start + _BLOCK]) & HIGH_BITS:
            return False
    return not bool((data[whole:] & 0x80).any())
