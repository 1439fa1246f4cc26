"""Seconds that are too far for Polars, which holds milliseconds: it would overflow them without a word."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from framewire._compact import take_rows
from framewire._infer._where import Where
from framewire.table._items import Spans, as_list

_MAX_SECONDS: Final = ((1 << 63) - 1) // 1000
_HINT: Final = "Use null, or a value within 292 million years, or cast the column to text."


def check_seconds(table: pa.Table) -> None:
    """Look at every ``timestamp[s]`` and ``duration[s]`` of a table in wire types, however deep.

    Raises:
        UnsupportedValueError: A value is beyond 64 bits of milliseconds; names column and row.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if _has_seconds(field.type):
            row = 0
            for chunk in column.chunks:
                _check(chunk, Where(field.name).after(row))
                row += len(chunk)


def _is_seconds(kind: pa.DataType) -> bool:
    return bool((is_.is_timestamp(kind) or is_.is_duration(kind)) and kind.unit == "s")


def _has_seconds(kind: pa.DataType) -> bool:
    if is_.is_dictionary(kind):
        return _is_seconds(kind.value_type)
    return _is_seconds(kind) or any(_has_seconds(kind.field(at).type) for at in range(kind.num_fields))


def _check(array: pa.Array, where: Where) -> None:
    """Only what is shown: values under nulls and outside the slice are nobody's."""
    kind = array.type
    if not _has_seconds(kind):
        return
    if is_.is_dictionary(kind):
        _check(array.dictionary.take(array.indices), where)
    elif is_.is_struct(kind):
        shown = pa.array(np.arange(len(array)), mask=np.asarray(array.is_null())) if array.null_count else None
        for at, field in enumerate(kind):
            child = array.field(at)
            _check(child if shown is None else take_rows(child, shown), where.field(field.name))
    elif kind.num_fields:
        lists = as_list(array)
        spans = Spans(lists)
        _check(spans.gather(lists.values), where.items(spans.offsets))
    else:
        seconds = array.view(pa.int64())
        far = pc.or_(pc.greater(seconds, _MAX_SECONDS), pc.less(seconds, -_MAX_SECONDS))
        if (at := pc.index(far, pa.scalar(True)).as_py()) >= 0:
            raise where.refuse(at, str(kind), f"a {kind} that is too far for milliseconds", _HINT)
