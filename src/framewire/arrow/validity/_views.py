"""Texts and bytes in views, seen with vectorised arithmetic where that is faster than Arrow's look at one after the other.

A view is 16 bytes: a length; then up to 12 bytes in place and zeros behind them, or the first four bytes, a buffer number and an
offset. Text that is ASCII is UTF-8 wherever it is cut.

Where all values are short there is a mask for every length of the bits that must be zero: all of the padding and, of text, each
byte's highest. Where all lengths are one, as those of flags and codes are, one mask does for all of them: a tenth of Arrow's
time; else half. Where some are long Arrow follows them, as bytes, which takes a third of the time that it takes for text, and
what is left is to see that those in place are ASCII, and the data buffers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framewire.arrow.validity._ascii import HIGH_BITS
from framewire.arrow.validity._fold import BLOCK_ROWS, reduced

_INLINE_BYTES: Final = 12


def _masks(text_mask: int) -> npt.NDArray[np.uint64]:
    """Bits that must be zero in the halves of a view, by length. A greater length has all of them."""
    rows = np.full((_INLINE_BYTES + 2, 16), 0xFF, np.uint8)
    for length in range(_INLINE_BYTES + 1):
        rows[length, :4] = 0
        rows[length, 4 : 4 + length] = text_mask
    return rows.view("<u8").astype(np.uint64)


_TEXT: Final = _masks(0x80)
_BYTES: Final = _masks(0x00)


def are_plain(array: pa.Array) -> bool:
    """Whether a ``string_view`` or ``binary_view`` array has short values only, all of them good, and its text ASCII.

    Args:
        array: An array that ``validate()`` accepts: its buffers are as long as its rows need.
    """
    buffers = array.buffers()
    if any(data.size for data in buffers[2:]):
        return False  # some value is long, most likely
    if len(array) == 0:
        return True
    masks = _TEXT if pa.types.is_string_view(array.type) else _BYTES
    halves = np.frombuffer(buffers[1], np.uint64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
    return all(
        _of_one_length(block, masks) or _of_any_length(block, masks)
        for block in (halves[start : start + BLOCK_ROWS] for start in range(0, len(array), BLOCK_ROWS))
    )


def are_ascii_in_place(array: pa.Array) -> bool:
    """Whether what the views of a ``string_view`` array hold themselves is ASCII; Arrow has taken them as bytes."""
    halves = np.frombuffer(array.buffers()[1], np.uint64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
    for start in range(0, len(array), BLOCK_ROWS):
        block = halves[start : start + BLOCK_ROWS]
        short = np.flatnonzero(block.view(np.uint32)[:, 0] <= _INLINE_BYTES)
        if len(short):
            ones = reduced(block if len(short) == len(block) else block.take(short, axis=0), np.bitwise_or)
            # The lengths, at most 12, have no high bits; padding is zero, and the first bytes of long ones are in a buffer too.
            if (ones & HIGH_BITS).any():
                return False
    return True


def _of_one_length(block: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]) -> bool:
    ones = reduced(block, np.bitwise_or)
    length = int(ones[0]) & 0xFFFFFFFF
    if length > _INLINE_BYTES or length != int(reduced(block, np.bitwise_and)[0]) & 0xFFFFFFFF:
        return False
    return not (ones & masks[length]).any()


def _of_any_length(block: npt.NDArray[np.uint64], masks: npt.NDArray[np.uint64]) -> bool:
    # Negative lengths, taken as unsigned, are too great as well.
    wrong = masks.take(np.minimum(block.view(np.uint32)[:, 0], _INLINE_BYTES + 1), axis=0, mode="clip")
    return not np.bitwise_and(wrong, block, out=wrong).any()
