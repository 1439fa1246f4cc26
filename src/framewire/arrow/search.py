"""Search for the row at fault in a column that is known to hold one."""

from __future__ import annotations

from collections.abc import Callable


def first_failing(length: int, fails: Callable[[int, int], bool]) -> int:
    """The first of ``length`` rows that fails, by halving.

    Args:
        length: Rows, of which at least one fails.
        fails: Whether a row from ``start`` to before ``stop`` fails.
    """
    start, stop = 0, length
    while stop - start > 1:
        middle = (start + stop) // 2
        start, stop = (start, middle) if fails(start, middle) else (middle, stop)
    return start
