"""Values that the rows of a nested array show: items of lists of every kind, and leaves with nothing that lies under a null.

pyarrow's own ``flatten`` knows neither maps nor dictionaries of nested values, and its cast from list_view to list
loses every item (arrow#50994).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framewire.arrow.nested import children
from framewire.arrow.take import take_rows
from framewire.arrow.types import any_type, is_list_view

__all__ = ["Spans", "as_list", "decode_runs", "relabel", "visible_leaves"]


class _Relabelled:
    """An array under another type of the same layout, for pyarrow's import protocol: no byte is copied."""

    def __init__(self, array: pa.Array, dtype: pa.DataType) -> None:
        self._array, self._dtype = array, dtype

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        _, array = self._array.__arrow_c_array__()
        return self._dtype.__arrow_c_schema__(), array


def relabel(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """``array`` as ``dtype``, which differs in labels only: metadata, time zone, extension name, list for map."""
    return array if array.type.equals(dtype, check_metadata=True) else pa.array(_Relabelled(array, dtype))


def as_list(array: pa.Array) -> pa.Array:
    """A map as the list of structs that it is underneath; other lists as they are."""
    if not pa.types.is_map(array.type):
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
        dtype = lists.type
        if pa.types.is_fixed_size_list(dtype):
            starts = (lists.offset + np.arange(len(lists), dtype=np.int64)) * dtype.list_size
            lengths = np.full(len(lists), dtype.list_size, np.int64)
        elif is_list_view(dtype):
            starts = np.asarray(lists.offsets).astype(np.int64)
            lengths = np.asarray(lists.sizes).astype(np.int64)
        else:
            bounds = np.asarray(lists.offsets).astype(np.int64)
            starts, lengths = bounds[:-1], np.diff(bounds)
        end = int(starts[-1] + lengths[-1]) if len(lists) else 0
        if lists.null_count:
            lengths = np.where(np.asarray(lists.is_valid()), lengths, 0)
        self.offsets: Any = np.concatenate(([0], np.cumsum(lengths)))
        total = int(self.offsets[-1])
        self._first = end - total if total else 0
        # Lists other than views lie end to end, unless null ones have items. None: the shown items are one slice.
        self._positions: Any = None
        if total and (is_list_view(dtype) or self._first != starts[0]):
            # Position in the values of each shown item: its list's start and its place in the list.
            self._positions = np.repeat(starts - self.offsets[:-1], lengths) + np.arange(total)

    def gather(self, values: pa.Array) -> pa.Array:
        """The shown items of ``values``; a slice where they lie end to end."""
        if self._positions is None:
            return values.slice(self._first, int(self.offsets[-1]))
        return take_rows(values, pa.array(self._positions))


def decode_runs(array: pa.Array) -> pa.Array:
    """Run ends decoded by position, because pyarrow's own kernel knows neither views nor dictionaries."""
    positions = pa.array(np.arange(len(array.values)))
    runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, positions)
    return take_rows(array.values, pc.run_end_decode(runs.slice(array.offset, len(array))))


def visible_leaves(
    array: pa.Array, wanted: Callable[[pa.DataType], bool], path: str = ""
) -> Iterator[tuple[pa.Array, str]]:
    """Arrays of the innermost types that are ``wanted``, each with its path (``.field``, ``[]``).

    They hold only what the array's rows show: nothing that lies under a null or outside a slice. Dictionaries and run
    ends are decoded.
    """
    dtype = array.type
    if not any_type(wanted, dtype):
        return
    if isinstance(dtype, pa.BaseExtensionType):
        yield from visible_leaves(array.storage, wanted, path)
    elif pa.types.is_run_end_encoded(dtype):
        yield from visible_leaves(decode_runs(array), wanted, path)
    elif pa.types.is_dictionary(dtype):
        yield from visible_leaves(take_rows(array.dictionary, array.indices), wanted, path)
    elif pa.types.is_struct(dtype):
        for child, field in zip(_shown_fields(array), dtype, strict=True):
            yield from visible_leaves(child, wanted, f"{path}.{field.name}")
    elif dtype.num_fields:
        lists = as_list(array)
        yield from visible_leaves(Spans(lists).gather(lists.values), wanted, f"{path}[]")
    else:
        yield array, path


def _shown_fields(array: pa.Array) -> list[pa.Array]:
    """A struct's fields, null where the struct is."""
    fields = children(array)
    if not array.null_count:
        return fields
    if any(pa.types.is_run_end_encoded(field.type) for field in fields):
        # Run ends have no validity of their own, so flatten() cannot hide their values.
        fields = [decode_runs(field) if pa.types.is_run_end_encoded(field.type) else field for field in fields]
        array = pa.StructArray.from_arrays(fields, [field.name for field in array.type], mask=array.is_null())
    return list(array.flatten())
