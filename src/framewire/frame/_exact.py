"""What a form can hold: the type to convert by way of, and the values that would not survive, found beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from framewire.arrow.cast import cast_column
from framewire.arrow.take import take_rows
from framewire.errors import UnsupportedTypeError, UnsupportedValueError

__all__ = ["Limits", "Target", "clock", "exact", "is_plain", "leaves", "needs_a_look", "refused_value"]

_t = pa.types
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ARROW_HINT: Final = "Annotate the frame parameter as pa.Table to receive it as it is, or leave that column out."

Limits: TypeAlias = "tuple[int, int] | None"
"""The least and the greatest stored integer that converts exactly, or None where all do."""


class Target(NamedTuple):
    """What one form can hold.

    Attributes:
        name: How messages call it.
        leaf_type: The Arrow type that converts exactly in place of an innermost type; None where there is none.
        limits: The values of an innermost type that convert exactly.
        nested: Whether a list or struct type exists there, its children aside.
    """

    name: str
    leaf_type: Callable[[pa.DataType], pa.DataType | None]
    limits: Callable[[pa.DataType], Limits]
    nested: Callable[[pa.DataType], bool]


def exact(column: pa.ChunkedArray, field: pa.Field, target: Target) -> pa.ChunkedArray:
    """``column`` as the type that ``target`` takes exactly; the column itself where that is its own type.

    Raises:
        UnsupportedTypeError: ``target`` has no counterpart of the type.
        UnsupportedValueError: A value would be altered; the message names column and row.
    """
    wanted = _type_for(field.type, field, target)
    if _is_limited(field.type, target) and not _within(column, target):
        raise refused_value(column, field, target, lambda part: not _within(part, target))
    if wanted == field.type:
        return column
    cast = _cast(column, wanted)
    if cast is None:
        raise refused_value(column, field, target, lambda part: _cast(part, wanted) is None)
    return cast


def needs_a_look(field: pa.Field, target: Target) -> bool:
    """Whether :func:`exact` would do anything to a column of this field: convert it, look at its values, or refuse it."""
    return _is_limited(field.type, target) or _counterpart_or_none(field, target) != field.type


def _counterpart_or_none(field: pa.Field, target: Target) -> pa.DataType | None:
    try:
        return _type_for(field.type, field, target)
    except UnsupportedTypeError:
        return None


def leaves(array: pa.Array, field: pa.Field) -> Iterator[tuple[pa.Array, pa.Field]]:
    """The innermost arrays with their fields, holding only what is visible: nothing that lies under a null."""
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        yield from leaves(array.storage, field.with_type(type_.storage_type))
    elif _t.is_map(type_):
        entries = pa.list_(pa.struct([type_.key_field, type_.item_field]))
        yield from leaves(array.cast(entries), field.with_type(entries))
    elif _t.is_list(type_) or _t.is_large_list(type_) or _t.is_fixed_size_list(type_):
        yield from leaves(array.flatten(), type_.value_field)
    elif _t.is_struct(type_):
        for i, child in enumerate(array.flatten()):
            yield from leaves(child, type_.field(i))
    else:
        yield array, field


def refused_value(
    column: pa.ChunkedArray, field: pa.Field, target: Target, fails: Callable[[pa.ChunkedArray], bool]
) -> UnsupportedValueError:
    """The error for the first row that fails, found by halving."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(column.slice(low, middle - low)) else (middle, high)
    return UnsupportedValueError(
        f"Row {low} of column {field.name!r} holds a {field.type} that {target.name} cannot hold exactly.",
        hint=_ARROW_HINT,
        details={"column": field.name, "row": low},
    )


def clock(type_: pa.DataType) -> Limits:
    """A time of day lies within one day (Polars nulls others, Python wraps them); other leaves have no limit here."""
    return (0, 86_400 * _PER_SECOND[type_.unit] - 1) if _t.is_time(type_) else None


def is_plain(type_: pa.DataType) -> bool:
    """Innermost types that every form holds."""
    return any(test(type_) for test in _PLAIN)


_PLAIN: Final = (
    _t.is_null,
    _t.is_boolean,
    _t.is_integer,
    _t.is_floating,
    _t.is_decimal,
    _t.is_date,
    _t.is_time,
    _t.is_timestamp,
    _t.is_duration,
    _t.is_string,
    _t.is_large_string,
    _t.is_string_view,
    _t.is_binary,
    _t.is_large_binary,
    _t.is_binary_view,
    _t.is_fixed_size_binary,
)


def _type_for(type_: pa.DataType, column: pa.Field, target: Target) -> pa.DataType:
    wanted = _counterpart(type_, column, target)
    if wanted is None:
        hint = _ARROW_HINT
        raise UnsupportedTypeError(
            f"Column {column.name!r} has the type {column.type}, which {target.name} cannot hold.", hint=hint
        )
    return wanted


def _counterpart(type_: pa.DataType, column: pa.Field, target: Target) -> pa.DataType | None:
    """The type to convert by way of, built from the leaves up; None where there is none."""

    def child(field: pa.Field) -> pa.Field:
        return field.with_type(_type_for(field.type, column, target))

    if isinstance(type_, pa.BaseExtensionType):
        return _type_for(type_.storage_type, column, target)
    if not target.nested(type_):
        return None
    if _t.is_dictionary(type_):
        value_type = _type_for(type_.value_type, column, target)
        nested = _t.is_dictionary(value_type)
        return None if nested else pa.dictionary(type_.index_type, value_type, type_.ordered)
    if _t.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        distinct = len({field.name for field in fields}) == len(fields)
        return pa.struct([child(field) for field in fields]) if distinct else None
    if _t.is_map(type_):
        return pa.map_(child(type_.key_field), child(type_.item_field), type_.keys_sorted)
    if _t.is_large_list(type_):
        return pa.large_list(child(type_.value_field))
    if _t.is_fixed_size_list(type_):
        return pa.list_(child(type_.value_field), type_.list_size)
    if _t.is_list(type_):
        return pa.list_(child(type_.value_field))
    return target.leaf_type(type_)


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


def _is_limited(type_: pa.DataType, target: Target) -> bool:
    """Whether some innermost type has values that ``target`` cannot hold: only then are values looked at."""
    if isinstance(type_, pa.BaseExtensionType):
        return _is_limited(type_.storage_type, target)
    if _t.is_dictionary(type_):
        return _is_limited(type_.value_type, target)
    if type_.num_fields:
        return any(_is_limited(type_.field(i).type, target) for i in range(type_.num_fields))
    return target.limits(type_) is not None


def _within(column: pa.ChunkedArray, target: Target) -> bool:
    for chunk in column.chunks:
        for leaf, _ in leaves(chunk, pa.field("", chunk.type)):
            values: Any = leaf.dictionary_decode() if _t.is_dictionary(leaf.type) else leaf
            if (limits := target.limits(values.type)) is None:
                continue
            stored = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
            extremes = pc.min_max(stored).as_py()
            least, greatest = extremes["min"], extremes["max"]
            if least is not None and not limits[0] <= least <= greatest <= limits[1]:
                return False
    return True
