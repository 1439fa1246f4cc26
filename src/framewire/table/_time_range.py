"""Times out of the range of the type that they have on the wire or in Polars, where they would wrap or be refused late."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from framewire.arrow.polars_types import exact_range
from framewire.arrow.ranges import Range, out_of_range
from framewire.values.location import ValueLocation

_DAY_MILLISECONDS: Final = 86_400_000
_DATE64: Final = (-(1 << 31) * _DAY_MILLISECONDS, ((1 << 31) - 1) * _DAY_MILLISECONDS)
"""``date64`` crosses as 32 bits of days."""


def check_time_range(table: pa.Table) -> None:
    """Check every ``timestamp[s]``, ``duration[s]`` and ``date64`` of a valid table, however deep.

    Raises:
        UnsupportedValueError: A value is beyond 64 bits of milliseconds, or 32 bits of days; names column and row.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if (found := out_of_range(column, _range)) is not None:
            unit, years = ("date32", "5.8") if pa.types.is_date64(found.dtype) else ("milliseconds", "292")
            raise ValueLocation(name + found.path).refuse(
                found.row,
                str(found.dtype),
                f"a {found.dtype} that is too far for {unit}",
                f"Use null, or a value within {years} million years, or cast the column to text.",
            )


def _range(dtype: pa.DataType) -> Range:
    return _DATE64 if pa.types.is_date64(dtype) else exact_range(dtype)
