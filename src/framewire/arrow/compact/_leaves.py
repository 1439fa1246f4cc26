"""Columns without children, and what they share with those that have some: validity, exact buffers, offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from framewire.arrow.bits import as_array, as_buffer, exact_slice, hides, read_bits, same_buffer, unpack, zero_hidden
from framewire.arrow.compact._views import pack_views
from framewire.arrow.nested import own_buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from framewire.arrow.bits import Bits, Bools

__all__ = ["bools", "empty_hidden", "fixed_width", "masks", "offsets_of", "rebase", "rebuild", "text", "views"]


def masks(array: pa.Array, live: Bits | None, field: pa.Field) -> tuple[Bits | None, Bits | None]:
    """The validity to write, and the rows whose values are kept; ``None`` means all.

    They differ only where the field may not be null and its parent is: such a row stays valid and is zeroed.
    """
    own = None if array.null_count == 0 else read_bits(array.buffers()[0], array.offset, len(array))
    if live is None:
        return own, own
    keep = live if own is None else own
    if own is not None and (own & ~live).any():  # otherwise its own bitmap is right, and stays
        keep = own & live
    return (keep if field.nullable else own), keep


def rebuild(
    array: pa.Array, valid: Bits | None, rest: Sequence[pa.Buffer], children: Sequence[pa.Array] = (), same: bool = True
) -> pa.Array:
    """The array over new buffers, or the array itself when they are its own; ``same`` says that its children are."""
    buffers = [None if valid is None else as_buffer(valid), *rest]
    old = own_buffers(array)
    if same and array.offset == 0 and len(old) == len(buffers) and all(map(same_buffer, old, buffers)):
        return array
    nulls = 0 if valid is None else -1
    return pa.Array.from_buffers(array.type, len(array), buffers, nulls, 0, list(children) or None)


def fixed_width(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    width = array.type.bit_width // 8
    data = exact_slice(array.buffers()[1], array.offset * width, len(array) * width)
    return rebuild(array, valid, [zero_hidden(data, width, keep, len(array))])


def bools(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    if len(array) == 0:
        return rebuild(array, None, [pa.py_buffer(b"")])
    bits = read_bits(array.buffers()[1], array.offset, len(array))
    if keep is not None and (bits & ~keep).any():
        bits = bits & keep
    return rebuild(array, valid, [as_buffer(bits)])


def views(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    buffers = array.buffers()
    views = zero_hidden(exact_slice(buffers[1], array.offset * 16, len(array) * 16), 16, keep, len(array))
    views, data = pack_views(views, buffers[2:], len(array))
    return rebuild(array, valid, [views, *data])


def offsets_of(array: pa.Array, wide: bool) -> Any:
    """The array's own ``len + 1`` offsets. An empty array may come without any."""
    offsets = as_array(array.buffers()[1], np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return offsets if len(offsets) else np.zeros(1, offsets.dtype)


def rebase(array: pa.Array, offsets: Any) -> pa.Buffer:
    """Offsets from zero, in a buffer of exactly their length: the array's own where it is that."""
    if offsets[0] != 0:
        return as_buffer(offsets - offsets[0])
    return as_buffer(offsets)


def empty_hidden(offsets: Any, keep: Bits | None) -> tuple[Any, Bools] | None:
    """Offsets with nothing in rows that are not kept, and the rows kept; ``None`` when nothing is in them already."""
    if keep is None:
        return None
    sizes = np.diff(offsets)
    if not hides(sizes != 0, keep):
        return None
    kept = unpack(keep, len(sizes))
    emptied = np.zeros_like(offsets)
    np.cumsum(np.where(kept, sizes, 0), out=emptied[1:])
    return emptied, kept


def text(array: pa.Array, live: Bits | None, field: pa.Field) -> pa.Array:
    valid, keep = masks(array, live, field)
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets = offsets_of(array, wide)
    emptied = empty_hidden(offsets, keep)
    data = array.buffers()[2]
    if emptied is None:
        data = exact_slice(data, int(offsets[0]), int(offsets[-1] - offsets[0]))
        return rebuild(array, valid, [rebase(array, offsets), data])
    new, kept = emptied
    # Without its validity every row counts, so that the filter copies exactly the kept bytes, end to end.
    plain = pa.large_binary() if wide else pa.binary()
    whole = pa.Array.from_buffers(plain, len(array), [None, as_buffer(offsets), data], 0)
    dense = whole.filter(pa.array(kept)).buffers()[2]
    return rebuild(array, valid, [as_buffer(new), exact_slice(dense, 0, int(new[-1]))])
