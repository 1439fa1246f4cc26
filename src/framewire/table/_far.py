"""Times that are too far for the type that they have on the wire or in Polars, where they would wrap or be refused late.

Polars holds seconds as milliseconds, and overflows them without a word; ``date64`` crosses as 32 bits of days.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

from framewire.arrow.take import take_rows
from framewire.table._decode import decode_runs
from framewire.table._items import Spans, as_list
from framewire.values.location import Where

_MAX_SECONDS: Final = ((1 << 63) - 1) // 1000
_DAY_MILLISECONDS: Final = 86_400_000
_DATE64_RANGE: Final = (-(1 << 31) * _DAY_MILLISECONDS, ((1 << 31) - 1) * _DAY_MILLISECONDS)


def check_far(table: pa.Table) -> None:
    """Look at every ``timestamp[s]``, ``duration[s]`` and ``date64`` of a valid table, however deep.

    Raises:
        UnsupportedValueError: A value is beyond 64 bits of milliseconds, or 32 bits of days; names column and row.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if _has_limits(field.type):
            row = 0
            for chunk in column.chunks:
                _check(chunk, Where(field.name).after(row))
                row += len(chunk)


def _limits(kind: pa.DataType) -> tuple[int, int, str, str] | None:
    """The least and the greatest stored integer that cross, what is said of others, and what to do; None: all cross."""
    if (is_.is_timestamp(kind) or is_.is_duration(kind)) and kind.unit == "s":
        hint = "Use null, or a value within 292 million years, or cast the column to text."
        return -_MAX_SECONDS, _MAX_SECONDS, "milliseconds", hint
    if is_.is_date64(kind):
        return *_DATE64_RANGE, "date32", "Use null, or a value within 5.8 million years, or cast the column to text."
    return None


def _has_limits(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_limits(kind.storage_type)
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return _has_limits(kind.value_type)
    return _limits(kind) is not None or any(_has_limits(kind.field(at).type) for at in range(kind.num_fields))


def _check(array: pa.Array, where: Where) -> None:
    """Only what is shown: values under nulls and outside the slice are nobody's."""
    kind = array.type
    if not _has_limits(kind):
        return
    if isinstance(kind, pa.BaseExtensionType):
        _check(array.storage, where)
    elif is_.is_run_end_encoded(kind):
        _check(decode_runs(array), where)
    elif is_.is_dictionary(kind):
        _check(take_rows(array.dictionary, array.indices), where)
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
        _check_flat(array, where)


def _check_flat(array: pa.Array, where: Where) -> None:
    limits = _limits(array.type)
    assert limits is not None
    least, greatest, unit, hint = limits
    ticks = array.view(pa.int64())
    far = pc.or_(pc.greater(ticks, greatest), pc.less(ticks, least))
    if (at := pc.index(far, pa.scalar(True)).as_py()) >= 0:
        raise where.refuse(at, str(array.type), f"a {array.type} that is too far for {unit}", hint)
