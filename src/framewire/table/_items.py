"""The items of lists of every kind, those that are shown and no others, in the lists' order.

pyarrow's own ``flatten`` knows neither maps nor dictionaries of nested values, and its cast from list_view to list
loses every item (arrow#50994).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as is_

from framewire.arrow.take import take_rows


class _Relabelled:
    """An array under another type of the same layout, for pyarrow's import protocol: no byte is copied."""

    def __init__(self, array: pa.Array, kind: pa.DataType) -> None:
        self._array, self._kind = array, kind

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        _, array = self._array.__arrow_c_array__()
        return self._kind.__arrow_c_schema__(), array


def relabel(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as ``kind``, which differs in labels only: metadata, time zone, extension name, list for map."""
    return array if array.type.equals(kind, check_metadata=True) else pa.array(_Relabelled(array, kind))


def as_list(array: pa.Array) -> pa.Array:
    """A map as the list of structs that it is underneath; other lists as they are."""
    if not is_.is_map(array.type):
        return array
    entry = pa.struct([array.type.key_field.with_nullable(False), array.type.item_field])
    return relabel(array, pa.list_(pa.field("entries", entry, nullable=False)))


class Spans:
    """Where each list's items lie among the array's values. A null list has none, whatever lies under it.

    Attributes:
        offsets: Where each list's items begin once only the shown ones are left, end to end (int64, one more than
            there are lists).
    """

    def __init__(self, lists: pa.Array) -> None:
        kind = lists.type
        if is_.is_fixed_size_list(kind):
            starts = (lists.offset + np.arange(len(lists), dtype=np.int64)) * kind.list_size
            lengths = np.full(len(lists), kind.list_size, np.int64)
        elif is_.is_list_view(kind) or is_.is_large_list_view(kind):
            starts = np.asarray(lists.offsets).astype(np.int64)
            lengths = np.asarray(lists.sizes).astype(np.int64)
        else:
            bounds = np.asarray(lists.offsets).astype(np.int64)
            starts, lengths = bounds[:-1], np.diff(bounds)
        if lists.null_count:
            lengths = np.where(np.asarray(lists.is_valid()), lengths, 0)
        self.offsets: Any = np.concatenate(([0], np.cumsum(lengths)))
        # Position in the values of each shown item: its list's start and its place in the list.
        self._positions = np.repeat(starts - self.offsets[:-1], lengths) + np.arange(self.offsets[-1])

    def gather(self, values: pa.Array) -> pa.Array:
        """The shown items of ``values``; a slice where they lie end to end."""
        positions = self._positions
        if len(positions) == 0:
            return values.slice(0, 0)
        first = int(positions[0])
        if int(positions[-1]) - first == len(positions) - 1 and bool((np.diff(positions) == 1).all()):
            return values.slice(first, len(positions))
        return take_rows(values, pa.array(positions))
