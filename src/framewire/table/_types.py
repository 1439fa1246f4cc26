"""The Arrow type of a column on the wire: its own, a decoded form, or none (refused by name).

The rule is ``docs/reference/types.md``. A type crosses when Polars reads it back from an IPC stream exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from framewire.arrow.polars_types import MAX_DIGITS, exact_type
from framewire.arrow.types import bare_type
from framewire.errors import UnsupportedTypeError
from framewire.values.location import MAX_NESTING
from framewire.wire import KEPT_FIELD_METADATA

_refuse = UnsupportedTypeError.of_column


def wire_field(field: pa.Field) -> pa.Field:
    """A column's field as it crosses: the type of :func:`wire_type`, and of the metadata only what Polars needs.

    Raises:
        UnsupportedTypeError: The type has no exact form on the wire; names the column's path and the type.
    """
    return _field(field, field.name, 0)


def _field(field: pa.Field, path: str, depth: int) -> pa.Field:
    dtype = wire_type(field.type, path, depth)
    metadata = None
    if field.metadata and pa.types.is_dictionary(dtype):
        metadata = {key: value for key, value in field.metadata.items() if key in KEPT_FIELD_METADATA}
    return pa.field(field.name, dtype, nullable=field.nullable, metadata=metadata or None)


def wire_type(dtype: pa.DataType, path: str, depth: int = 0) -> pa.DataType:
    """The type that a column of type ``dtype`` has on the wire.

    Raises:
        UnsupportedTypeError: It has none.
    """
    if depth > MAX_NESTING:
        raise _refuse(path, f"nested deeper than {MAX_NESTING} levels", "Flatten it, or use JSON text.")
    if isinstance(dtype, pa.BaseExtensionType):
        if dtype.extension_name == "arrow.opaque":
            raise _refuse(path, dtype, "Its bytes mean something to their producer only; cast it there.")
        return wire_type(dtype.storage_type, path, depth)
    if pa.types.is_run_end_encoded(dtype):
        return wire_type(dtype.value_type, path, depth)
    if pa.types.is_dictionary(dtype):
        value = wire_type(dtype.value_type, path, depth)
        return pa.dictionary(dtype.index_type, value, ordered=dtype.ordered) if is_kept_dictionary(dtype) else value
    if pa.types.is_nested(dtype):
        return _nested(dtype, path, depth)
    if pa.types.is_timestamp(dtype) and dtype.tz and (dtype.tz[0] in "+-" or dtype.tz == "Z"):
        return pa.timestamp(dtype.unit, "UTC")  # the same instants: Polars reads few offsets
    wanted = exact_type(dtype)
    if wanted is None:
        raise _refuse(path, dtype, _hint(dtype))
    return wanted


def _nested(dtype: pa.DataType, path: str, depth: int) -> pa.DataType:
    if pa.types.is_struct(dtype):
        return _struct(dtype, path, depth)
    if pa.types.is_map(dtype):
        # A map is a list of structs underneath: two levels.
        key = _map_key(dtype.key_type, f"{path}[].key", depth + 2)
        item = _field(dtype.item_field, f"{path}[].value", depth + 2)
        return pa.map_(key, item, keys_sorted=dtype.keys_sorted)
    if pa.types.is_fixed_size_list(dtype):
        item = _field(dtype.value_field, f"{path}[]", depth + 1)
        return pa.list_(item, dtype.list_size) if dtype.list_size else pa.list_(item)
    if pa.types.is_list(dtype) or pa.types.is_list_view(dtype):
        return pa.list_(_field(dtype.value_field, f"{path}[]", depth + 1))
    if pa.types.is_large_list(dtype) or pa.types.is_large_list_view(dtype):
        return pa.large_list(_field(dtype.value_field, f"{path}[]", depth + 1))
    raise _refuse(path, dtype, _hint(dtype))


def _map_key(dtype: pa.DataType, path: str, depth: int) -> pa.Field:
    """Keys are plain values: a dictionary could make them null, which keys must not be."""
    key = wire_type(dtype, path, depth)
    while pa.types.is_dictionary(key):
        key = key.value_type
    if pa.types.is_null(key):
        raise _refuse(path, "a map with keys of type null", "Give the keys a type.")
    return pa.field("key", key, nullable=False)


def _struct(dtype: pa.DataType, path: str, depth: int) -> pa.DataType:
    names = [field.name for field in dtype]
    if len(set(names)) < len(names):
        raise _refuse(path, "a struct with two fields of one name", "Rename one of them.")
    if any("\0" in name for name in names):
        raise _refuse(path, "a struct with NUL in a field's name", "Rename the field.")
    return pa.struct([_field(field, f"{path}.{field.name}", depth + 1) for field in dtype])


def is_kept_dictionary(dtype: pa.DataType) -> bool:
    """Whether a dictionary crosses as one: its values are flat. pyarrow cannot write a dictionary of dictionaries."""
    value = bare_type(dtype.value_type)
    return not (pa.types.is_nested(value) or pa.types.is_dictionary(value) or pa.types.is_null(value))


def _hint(dtype: pa.DataType) -> str:
    return next((hint for test, hint in _HINTS if test(dtype)), "Cast it to a type that the reference page lists.")


_HINTS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (pa.types.is_interval, "Use a duration, or integer columns of months, days and nanoseconds."),
    (pa.types.is_union, "Use a struct with one field for each alternative."),
    (pa.types.is_decimal, f"Cast it to a decimal of at most {MAX_DIGITS} digits, or to text."),
    (pa.types.is_timestamp, "Its zone is not in the time zone database: use one that is, or UTC."),
)
