"""Bytes needed if every view and dictionary value were materialised.

A view is 16 bytes that may show the same gigabyte as its neighbour; a dictionary's index may name the longest value in
every row. Arrow carries both as they are, but a conversion to plain text or Python objects pays in full (seen: 440
bytes that became 2 GB).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framewire.arrow.bits import as_array, read_bits, unpack
from framewire.arrow.nested import children
from framewire.arrow.types import any_type, is_view
from framewire.errors import TooLargeError

__all__ = ["ExpandedSize", "NeedsExactCount", "check_expanded"]

_Ints = npt.NDArray[np.int64]


class ExpandedSize:
    """Running upper bound of the materialised bytes of arrays, each added before it is read. Thread-safe.

    It counts rows times the longest value, so it may exceed the limit where :func:`check_expanded`, which counts exactly,
    does not.

    Args:
        max_bytes: Limit.
        stored_bytes: Bytes of all arrays as they are stored.
    """

    def __init__(self, max_bytes: int, *, stored_bytes: int) -> None:
        self._left = max_bytes - stored_bytes
        self._lock = threading.Lock()

    def add(self, array: pa.Array) -> None:
        """Count one array.

        Raises:
            NeedsExactCount: The bound exceeds the limit with this array.
            IndexError: A dictionary's index lies outside of it.
        """
        if not _expands(array.type):
            return
        added = _added_bytes(array, exact=False)
        with self._lock:
            self._left -= added
            if self._left < 0:
                raise NeedsExactCount


class NeedsExactCount(Exception):
    """The cheap upper bound exceeds the limit; an exact count is needed."""


def check_expanded(table: pa.Table, max_bytes: int, *, stored_bytes: int) -> int:
    """Check the bytes of a table with every view and dictionary value materialised.

    Args:
        table: Decoded by ``pa.ipc`` from a stream that was checked; its values need not be valid. Call this before
            ``validate(full=True)``, which reads every byte that every view shows.
        max_bytes: Limit.
        stored_bytes: Bytes of the table as it is stored: ``StreamShape.expanded_bytes`` (cheaper than ``table.nbytes``).

    Returns:
        The bytes: exact, or an upper bound where that is within the limit.

    Raises:
        IndexError: A dictionary's index lies outside of it.
        TooLargeError: They exceed ``max_bytes``.
    """
    columns = [table.column(i) for i, field in enumerate(table.schema) if _expands(field.type)]
    chunks = [chunk for column in columns for chunk in column.chunks]
    for exact in (False, True):
        total = stored_bytes + sum(_added_bytes(chunk, exact) for chunk in chunks)
        if total <= max_bytes:
            return total
    raise TooLargeError(
        f"The body holds {total} bytes once written out, above {max_bytes}.",
        hint="Raise FRAMEWIRE_MAX_BODY_BYTES or select fewer rows.",
    )


def _expands(dtype: pa.DataType) -> bool:
    """Whether a type holds, at any depth, values that may take more bytes once materialised."""
    return any_type(lambda part: is_view(part) or bool(pa.types.is_dictionary(part)), dtype)


def _added_bytes(array: pa.Array, exact: bool) -> int:
    """Bytes that materialising an array adds to those it has."""
    dtype = array.type
    if is_view(dtype):
        held = sum(int(data.size) for data in array.buffers()[2:])
        if not held:
            return 0  # all that they can show is inline; a longer view is not valid
        return max(_shown(_view_sizes(array), array, exact) - held, 0)
    if pa.types.is_dictionary(dtype):
        values = array.dictionary
        if not is_view(values.type) and values.type.num_buffers < 3:
            return max(len(array) * int(-(-values.type.bit_width // 8)), int(values.nbytes))
        sizes = _value_sizes(values)
        shown = len(array) * int(sizes.max(initial=0))
        if exact:
            shown = int(sizes[_codes(array.indices.drop_null())].sum())
        # The values are stored once, however many chunks share them, but are read for each chunk.
        return max(shown, int(array.dictionary.nbytes))
    if not _expands(dtype):
        return 0
    # Offsets of lists only rise in Arrow, so no item is in two lists.
    return sum(_added_bytes(child, exact) for child in children(array))


def _codes(indices: pa.Array) -> npt.NDArray[Any]:
    """Indices without nulls as numpy has them; ``to_numpy`` would import pandas, where it is installed."""
    codes = as_array(indices.buffers()[1], indices.type.to_pandas_dtype())
    return codes[indices.offset : indices.offset + len(indices)]


def _view_sizes(array: pa.Array) -> npt.NDArray[np.uint32]:
    """Length of each view: the first four of its sixteen bytes."""
    return as_array(array.buffers()[1], np.uint32)[4 * array.offset : 4 * (array.offset + len(array)) : 4]


def _shown(sizes: npt.NDArray[np.uint32], array: pa.Array, exact: bool) -> int:
    """Sum of the lengths, or rows times the longest, which reads the views faster."""
    if not exact:
        return len(sizes) * int(sizes.max(initial=0))
    if array.null_count:  # values under nulls are not shown
        sizes = sizes[unpack(read_bits(array.buffers()[0], array.offset, len(array)), len(array))]
    return int(sizes.sum(dtype=np.uint64))


def _value_sizes(values: pa.Array) -> _Ints:
    """Bytes of each text or binary value of a dictionary."""
    dtype = values.type
    if is_view(dtype):
        return _view_sizes(values).astype(np.int64)
    wide = pa.types.is_large_string(dtype) or pa.types.is_large_binary(dtype)
    ends = as_array(values.buffers()[1], np.int64 if wide else np.int32)[values.offset :][: len(values) + 1]
    lengths: _Ints = np.maximum(np.diff(ends.astype(np.int64)), 0)
    return lengths
