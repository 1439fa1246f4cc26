"""Merge many small chunks into few: a take from 39 chunks costs 28 ms, from one chunk 0.01."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

SMALL_ROWS: Final = 1 << 16
"""A batch of fewer rows is merged with its neighbours; a larger one is not copied."""
MERGED_ROWS: Final = 1 << 20
"""Rows of a merged batch, at most (unless the last one that went in was small enough to be merged)."""


def merge_small(table: pa.Table) -> pa.Table:
    """The same rows in few batches whose columns are cut at the same rows.

    Columns of ``string``, ``binary`` and ``list`` have 32-bit offsets: where merging would overflow them, the batches
    stay apart.
    """
    if table.num_columns == 0 or max(column.num_chunks for column in table.columns) <= 1:
        return table
    merged: list[Any] = []
    group: list[Any] = []
    rows = 0
    for batch in table.to_batches():
        if batch.num_rows == 0:
            continue
        is_small = batch.num_rows < SMALL_ROWS
        if group and (not is_small or rows + batch.num_rows > MERGED_ROWS):
            merged += _merge(group)
            group, rows = [], 0
        if is_small:
            group.append(batch)
            rows += batch.num_rows
        else:
            merged.append(batch)
    merged += _merge(group)
    return pa.Table.from_batches(merged, schema=table.schema)


def _merge(batches: list[Any]) -> list[Any]:
    if len(batches) < 2:
        return batches
    try:
        return [pa.concat_batches(batches)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Offsets or dictionary indices overflow, or the type cannot be concatenated.
        half = len(batches) // 2
        return batches if half == 0 or len(batches) == 2 else _merge(batches[:half]) + _merge(batches[half:])
