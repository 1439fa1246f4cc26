"""Full validation of Arrow arrays, faster where text is ASCII, on every processor that there is.

Arrow validates text value by value, which costs four times as much as checking that its offsets lie inside their buffer. Text
whose bytes are all ASCII is UTF-8 wherever it is cut, and that is seen eight bytes at a time. So such a column is validated as
binary, short views and decimals with arithmetic of our own (``_views``, ``_decimals``), and all else as Arrow does it: what is
accepted is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import pyarrow as pa
from pyarrow import types as is_

from framewire.arrow.threads import in_threads
from framewire.arrow.validity import _decimals, _views
from framewire.arrow.validity._ascii import Seen, is_ascii

__all__ = ["faults", "is_ascii", "validate"]

_SLOTS: Final = pa.binary(16)
"""Views and decimals as any 16 bytes."""
_GROUP_BYTES: Final = 16 << 20
"""Given to a thread at a time; what is no larger than one such group is looked at where it is."""


def validate(data: pa.Table | pa.ChunkedArray | pa.Array, before: Callable[[pa.Array], None] | None = None) -> None:
    """As ``data.validate(full=True)``.

    Args:
        data: What to look at.
        before: Called with each array right before its values are read, in the thread that reads them; what it raises ends the
            validation.

    Raises:
        pyarrow.ArrowInvalid: A value or a buffer is not what the type says; other exceptions as pyarrow raises them.
    """
    if isinstance(data, pa.Array):
        _validate(data, Seen())
        return
    if isinstance(data, pa.Table):
        data.validate()
    columns = data.columns if isinstance(data, pa.Table) else [data]
    for fault in faults(list(chain.from_iterable(column.chunks for column in columns)), before):
        if fault is not None:
            raise fault


def faults(arrays: Sequence[pa.Array], before: Callable[[pa.Array], None] | None = None) -> Iterator[Exception | None]:
    """What full validation says of each array, in their order; None where it says nothing.

    Large ones are looked at in several threads: Arrow and numpy let go of the interpreter's lock.
    """
    look = partial(_look, seen=Seen(), before=before)
    yield from chain.from_iterable(in_threads(look, list(_groups(arrays))))


def _groups(arrays: Sequence[pa.Array]) -> Iterator[list[pa.Array]]:
    """Neighbours that together are worth a thread's while."""
    group: list[pa.Array] = []
    nbytes = 0
    for array in arrays:
        group.append(array)
        # Views count all that they could point to, so their rows say more of the work.
        nbytes += 16 * len(array) if is_.is_string_view(array.type) or is_.is_binary_view(array.type) else array.nbytes
        if nbytes >= _GROUP_BYTES:
            yield group
            group, nbytes = [], 0
    if group:
        yield group


def _look(arrays: Iterable[pa.Array], seen: Seen, before: Callable[[pa.Array], None] | None) -> list[Exception | None]:
    found: list[Exception | None] = []
    for array in arrays:
        try:
            if before is not None:
                before(array)
            _validate(array, seen)
        except Exception as exc:  # pyarrow raises others than its own here: UnicodeDecodeError was seen
            found.append(exc)
        else:
            found.append(None)
    return found


def _validate(array: pa.Array, seen: Seen) -> None:
    kind = array.type
    if is_.is_string_view(kind) or is_.is_binary_view(kind):
        _check_all_but_values(array)
        if _views.are_plain(array) or (is_.is_string_view(kind) and _is_ascii_text(array, seen)):
            return
    elif is_.is_decimal128(kind):
        _check_all_but_values(array)
        if _decimals.are_plain(array):
            return
    elif is_.is_string(kind) or is_.is_large_string(kind):
        text = array.buffers()[2]
        if text is None or seen.is_ascii(text):
            twin = pa.binary() if is_.is_string(kind) else pa.large_binary()
            array = pa.Array.from_buffers(twin, len(array), array.buffers(), array.null_count, array.offset)
    array.validate(full=True)


def _is_ascii_text(array: pa.Array, seen: Seen) -> bool:
    """Whether views are good as bytes, and all that they show is ASCII."""
    data = array.buffers()[2:]
    if not sum(buffer.size for buffer in data) or not seen.are_ascii(data):
        return False
    twin = pa.Array.from_buffers(pa.binary_view(), len(array), array.buffers(), array.null_count, array.offset)
    try:
        twin.validate(full=True)
    except pa.ArrowException:
        return False
    return _views.are_ascii_in_place(array)


def _check_all_but_values(array: pa.Array) -> None:
    """An array of 16 bytes a row, whatever they say: its lengths, its bitmap, its count of nulls."""
    array.validate()
    twin = pa.Array.from_buffers(_SLOTS, len(array), array.buffers()[:2], array.null_count, array.offset)
    twin.validate(full=True)
