"""Arrow's full validation, on every processor that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from framewire.arrow.bits import as_array, read_bits, unpack
from framewire.arrow.nested import children
from framewire.arrow.threads import in_threads
from framewire.arrow.types import is_view

_INLINE_BYTES: Final = 12
"""Longest value that a view holds itself."""
_GROUP_BYTES: Final = 4 << 20
"""Validated by a thread at a time; what is no larger than one such group is validated in the calling thread."""


def validate(data: pa.Table, before: Callable[[pa.Array], None] | None = None) -> None:
    """As ``data.validate(full=True)``.

    Args:
        data: Any table.
        before: Called with each array right before its values are read, in the thread that reads them; what it raises ends the
            validation.

    Raises:
        pyarrow.ArrowInvalid: A value or a buffer does not fit the type; other exceptions as pyarrow raises them.
    """
    data.validate()
    chunks = list(chain.from_iterable(column.chunks for column in data.columns))
    for error in validation_errors(chunks, before):
        if error is not None:
            raise error


def validation_errors(
    arrays: Sequence[pa.Array], before: Callable[[pa.Array], None] | None = None
) -> Iterator[Exception | None]:
    """The error of the full validation of each array, in their order; None where the array is valid."""
    check = partial(_errors, before=before)
    yield from chain.from_iterable(in_threads(check, list(_groups(arrays))))


def check_hidden_views(array: pa.Array) -> None:
    """Check the views that lie under nulls, at any depth.

    Arrow's validation skips them, and Polars follows them when it gathers a column: a process died of one.

    Raises:
        pyarrow.ArrowInvalid: One leads out of its buffers.
    """
    dtype = array.type
    if pa.types.is_dictionary(dtype):
        check_hidden_views(array.dictionary)
    elif not is_view(dtype):
        for child in children(array):
            check_hidden_views(child)
    elif array.null_count:
        views = as_array(array.buffers()[1], np.uint32)[4 * array.offset : 4 * (array.offset + len(array))]
        valid = unpack(read_bits(array.buffers()[0], array.offset, len(array)), len(array))
        if (views[::4][~valid] > _INLINE_BYTES).any():
            buffers = [None, *array.buffers()[1:]]
            pa.Array.from_buffers(pa.binary_view(), len(array), buffers, 0, array.offset).validate(full=True)


def _groups(arrays: Sequence[pa.Array]) -> Iterator[list[pa.Array]]:
    """Neighbours that together are worth a thread."""
    group: list[pa.Array] = []
    nbytes = 0
    for array in arrays:
        group.append(array)
        # Views count all that they could point to, so their rows say more of the work.
        nbytes += 16 * len(array) if is_view(array.type) else array.nbytes
        if nbytes >= _GROUP_BYTES:
            yield group
            group, nbytes = [], 0
    if group:
        yield group


def _errors(arrays: Iterable[pa.Array], before: Callable[[pa.Array], None] | None) -> list[Exception | None]:
    errors: list[Exception | None] = []
    for array in arrays:
        try:
            if before is not None:
                before(array)
            array.validate(full=True)
        except Exception as exc:  # pyarrow raises others than its own here: UnicodeDecodeError was seen
            errors.append(exc)
        else:
            errors.append(None)
    return errors
