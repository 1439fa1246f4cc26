"""Rows of a table of any number of chunks, at the cost of the rows chosen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from framewire._compact._take import take_rows


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
    wanted = indices.to_numpy()
    owner = np.searchsorted(ends, wanted, side="right")
    order = np.argsort(owner, kind="stable")
    cuts = np.searchsorted(owner[order], np.arange(len(batches) + 1))
    parts: list[pa.RecordBatch] = []
    for number in np.unique(owner):
        mine = order[cuts[number] : cuts[number + 1]]
        start = ends[number] - batches[number].num_rows
        parts.append(_take_batch(batches[number], pa.array(wanted[mine] - start)))
    gathered = pa.Table.from_batches(parts, table.schema)
    if len(parts) < 2 or (order[1:] > order[:-1]).all():
        return gathered
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    whole = [pa.concat_arrays(column.chunks) for column in gathered.columns]
    return pa.Table.from_arrays([take_rows(column, pa.array(back)) for column in whole], schema=table.schema)


def _take_batch(batch: pa.RecordBatch, indices: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([take_rows(column, indices) for column in batch.columns], schema=batch.schema)
