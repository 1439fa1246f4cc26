"""Checks of a table before a form takes it: the type to convert by way of, and values that the form would alter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pyarrow as pa

from framewire.arrow.cast import cast_column
from framewire.arrow.ranges import Range, is_ranged, out_of_range
from framewire.arrow.search import first_failing
from framewire.arrow.take import take_rows
from framewire.arrow.types import TICKS, any_type, bare_type, is_list_view, map_type
from framewire.errors import UnsupportedTypeError, UnsupportedValueError

__all__ = ["FormLimits", "day_range", "exact", "is_exact", "unsupported_value"]

_ARROW_HINT: Final = "Annotate the frame parameter as pa.Table to receive it as it is, or leave that column out."


class FormLimits(NamedTuple):
    """Types and values that one form can hold.

    Attributes:
        name: Name of the form in messages.
        flat_type: The Arrow type that converts exactly in place of a flat type; None where there is none.
        range_of: The values of a flat type that convert exactly.
        holds_nested: Whether a list or struct type exists there, its children aside.
    """

    name: str
    flat_type: Callable[[pa.DataType], pa.DataType | None]
    range_of: Callable[[pa.DataType], Range]
    holds_nested: Callable[[pa.DataType], bool]


def exact(column: pa.ChunkedArray, field: pa.Field, limits: FormLimits) -> pa.ChunkedArray:
    """``column`` as the type that the form takes exactly; the column itself where that is its own type.

    Raises:
        UnsupportedTypeError: The form has no counterpart of the type.
        UnsupportedValueError: A value would be altered; the message names column and row.
    """
    wanted = _counterpart(field.type, limits)
    if wanted is None:
        raise UnsupportedTypeError(
            f"Column {field.name!r} has the type {field.type}, which {limits.name} cannot hold.", hint=_ARROW_HINT
        )
    if (found := out_of_range(column, limits.range_of)) is not None:
        raise _unsupported(found.row, field, limits)
    if wanted == field.type:
        return column
    cast = _cast(column, wanted)
    if cast is None:
        raise unsupported_value(column, field, limits, lambda part: _cast(part, wanted) is None)
    return cast


def is_exact(field: pa.Field, limits: FormLimits) -> bool:
    """Whether the form holds every value of the field's type as it is, so that :func:`exact` would return any column."""
    return not is_ranged(field.type, limits.range_of) and _counterpart(field.type, limits) == field.type


def unsupported_value(
    column: pa.ChunkedArray, field: pa.Field, limits: FormLimits, fails: Callable[[pa.ChunkedArray], bool]
) -> UnsupportedValueError:
    """The error for the first row of ``column`` that fails; one does."""
    return _unsupported(first_failing(len(column), lambda start, stop: fails(column[start:stop])), field, limits)


def _unsupported(row: int, field: pa.Field, limits: FormLimits) -> UnsupportedValueError:
    return UnsupportedValueError(
        f"Row {row} of column {field.name!r} holds a {field.type} that {limits.name} cannot hold exactly.",
        hint=_ARROW_HINT,
        details={"column": field.name, "row": row},
    )


def day_range(dtype: pa.DataType) -> Range:
    """A time of day lies within one day (Polars nulls others, Python wraps them); other types have no range here."""
    return (0, 86_400 * TICKS[dtype.unit] - 1) if pa.types.is_time(dtype) else None


def _counterpart(dtype: pa.DataType, limits: FormLimits) -> pa.DataType | None:
    """The type to convert by way of; None where there is none."""
    if any_type(lambda part: not _is_held(part, limits), dtype):
        return None
    return map_type(lambda leaf: limits.flat_type(leaf) or leaf, dtype)


def _is_held(dtype: pa.DataType, limits: FormLimits) -> bool:
    """Whether the form has a counterpart of the type, its children aside."""
    if isinstance(dtype, pa.BaseExtensionType):
        return True
    if pa.types.is_dictionary(dtype):
        return not pa.types.is_dictionary(bare_type(dtype.value_type))
    if not pa.types.is_nested(dtype):
        return limits.flat_type(dtype) is not None
    if is_list_view(dtype) or pa.types.is_run_end_encoded(dtype) or pa.types.is_union(dtype):
        return False
    names = [dtype.field(i).name for i in range(dtype.num_fields)]
    return len(set(names)) == len(names) and limits.holds_nested(dtype)


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    """The checked cast, or None when a value would change."""
    try:
        return cast_column(column, wanted)
    except pa.ArrowInvalid:
        pass
    try:
        # What lies under a null list is cast as well. Taking every row leaves it behind.
        taken = [take_rows(chunk, pa.array(range(len(chunk)), pa.int64())) for chunk in column.chunks]
        return cast_column(pa.chunked_array(taken, column.type), wanted)
    except pa.ArrowInvalid:
        return None
