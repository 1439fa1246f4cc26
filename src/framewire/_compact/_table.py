"""Rows of a table of any number of chunks, at the cost of the rows chosen."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framewire._compact._take import take_rows
from framewire.selection import int64_array


def take_table(table: pa.Table, indices: pa.Array) -> pa.Table:
    """``table.take`` for any column type, at the cost of the chosen rows whatever the number of chunks.

    ``Table.take`` looks at every chunk of every column (measured: 28 ms for 100 of 10 M rows in 39 chunks, 0.01 ms in one), so
    each batch is asked only for its own rows, and the few results are put in order.

    Args:
        table: Any table.
        indices: Rows, int64, every one in range.

    Returns:
        The rows in the order of ``indices``, in one batch. Views and dictionaries may still hold other rows' bytes: compact it.
    """
    batches = table.to_batches()
    if not batches:
        return table.slice(0, 0)
    if len(batches) == 1:
        return pa.Table.from_batches([_take_batch(batches[0], indices)], table.schema)
    ends = np.cumsum([batch.num_rows for batch in batches])
    wanted = np.frombuffer(indices.buffers()[1], np.int64, len(indices), 8 * indices.offset)
    owner = np.searchsorted(ends, wanted, side="right")
    order = np.argsort(owner, kind="stable")
    cuts = np.searchsorted(owner[order], np.arange(len(batches) + 1))
    touched = [
        (number, order[cuts[number] : cuts[number + 1]], ends[number] - batches[number].num_rows)
        for number in np.unique(owner).tolist()
    ]
    columns = [
        _numbers(table.schema.types[at], batches, at, touched, wanted) or _any(batches, at, touched, wanted, order)
        for at in range(table.num_columns)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


Touched: TypeAlias = "list[tuple[int, npt.NDArray[np.int64], int]]"
"""Batch, the places in the answer that it fills, and the batch's first row."""


def _numbers(
    kind: pa.DataType, batches: list[pa.RecordBatch], at: int, touched: Touched, wanted: npt.NDArray[np.int64]
) -> pa.Array | None:
    """Fixed-width values without nulls, straight from their buffers: a tenth of the time of a kernel call for each batch."""
    if not pa.types.is_primitive(kind) or kind.bit_width not in _WIDTHS:
        return None
    values = np.empty(len(wanted), _WIDTHS[kind.bit_width])
    for number, places, start in touched:
        chunk = batches[number].column(at)
        if chunk.null_count:
            return None
        data = np.frombuffer(chunk.buffers()[1], values.dtype, len(chunk), chunk.offset * values.itemsize)
        values[places] = data[wanted[places] - start]
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


_WIDTHS: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def _any(
    batches: list[pa.RecordBatch],
    at: int,
    touched: Touched,
    wanted: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
) -> pa.Array:
    parts = [
        take_rows(batches[number].column(at), int64_array(wanted[places] - start)) for number, places, start in touched
    ]
    gathered = pa.concat_arrays(parts) if parts else batches[0].column(at).slice(0, 0)
    if (order[1:] > order[:-1]).all():
        return gathered
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return take_rows(gathered, int64_array(back))


def _take_batch(batch: pa.RecordBatch, indices: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([take_rows(column, indices) for column in batch.columns], schema=batch.schema)
