"""Which Arrow type a column has on the wire: itself, its decoded form, or none (refused by name).

The rule is ``docs/reference/types.md``. A type crosses when Polars reads it back from an IPC stream exactly; this
module holds what was measured of polars 2.1, which refuses, alters, panics or aborts on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as is_

from framewire.errors import UnsupportedTypeError
from framewire.values.location import MAX_NESTING
from framewire.wire import KEPT_FIELD_METADATA

_MAX_DIGITS: Final = 38
_FLAT: Final[tuple[Callable[[Any], bool], ...]] = (
    is_.is_null, is_.is_boolean, is_.is_integer, is_.is_floating, is_.is_date32, is_.is_time, is_.is_duration,
    is_.is_string, is_.is_large_string, is_.is_string_view, is_.is_binary, is_.is_large_binary, is_.is_binary_view,
)  # fmt: skip
"""Types that cross as they are."""


def wire_field(field: pa.Field) -> pa.Field:
    """A column's field as it crosses: the type of :func:`wire_type`, and of the metadata only what Polars needs.

    Raises:
        UnsupportedTypeError: The type has no exact form on the wire; names the column's path and the type.
    """
    return _field(field, field.name, 0)


def _field(field: pa.Field, path: str, depth: int) -> pa.Field:
    kind = wire_type(field.type, path, depth)
    metadata = None
    if field.metadata and is_.is_dictionary(kind):
        metadata = {key: value for key, value in field.metadata.items() if key in KEPT_FIELD_METADATA}
    return pa.field(field.name, kind, nullable=field.nullable, metadata=metadata or None)


def wire_type(kind: pa.DataType, path: str, depth: int = 0) -> pa.DataType:
    """The type that a column of type ``kind`` has on the wire.

    Raises:
        UnsupportedTypeError: It has none.
    """
    if depth > MAX_NESTING:
        raise _refuse(path, f"nested deeper than {MAX_NESTING} levels", "Flatten it, or use JSON text.")
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.opaque":
            raise _refuse(path, kind, "Its bytes mean something to their producer only; cast it there.")
        return wire_type(kind.storage_type, path, depth)
    if any(test(kind) for test in _FLAT):
        return kind
    if is_.is_date64(kind):
        return pa.date32()
    if is_.is_decimal(kind):
        return _decimal(kind, path)
    if is_.is_timestamp(kind):
        return _timestamp(kind, path)
    if is_.is_fixed_size_binary(kind):
        return kind if kind.byte_width else pa.binary()
    if is_.is_run_end_encoded(kind):
        return wire_type(kind.value_type, path, depth)
    if is_.is_dictionary(kind):
        return _dictionary(kind, path, depth)
    return _nested(kind, path, depth)


def _nested(kind: pa.DataType, path: str, depth: int) -> pa.DataType:
    if is_.is_struct(kind):
        return _struct(kind, path, depth)
    if is_.is_map(kind):
        # A map is a list of structs underneath: two levels.
        key = _map_key(kind.key_type, f"{path}[].key", depth + 2)
        item = _field(kind.item_field, f"{path}[].value", depth + 2)
        return pa.map_(key, item, keys_sorted=kind.keys_sorted)
    if is_.is_fixed_size_list(kind):
        item = _field(kind.value_field, f"{path}[]", depth + 1)
        return pa.list_(item, kind.list_size) if kind.list_size else pa.list_(item)
    if is_.is_list(kind) or is_.is_list_view(kind):
        return pa.list_(_field(kind.value_field, f"{path}[]", depth + 1))
    if is_.is_large_list(kind) or is_.is_large_list_view(kind):
        return pa.large_list(_field(kind.value_field, f"{path}[]", depth + 1))
    raise _refuse(path, kind, _HINTS.get(kind.id, "Cast it to a type that the reference page lists."))


def _map_key(kind: pa.DataType, path: str, depth: int) -> pa.Field:
    """Keys are plain values: a dictionary could make them null, which keys must not be."""
    key = wire_type(kind, path, depth)
    while is_.is_dictionary(key):
        key = key.value_type
    if is_.is_null(key):
        raise _refuse(path, "a map with keys of type null", "Give the keys a type.")
    return pa.field("key", key, nullable=False)


_HINTS: Final[Mapping[int, str]] = {
    pa.lib.Type_INTERVAL_MONTH_DAY_NANO: "Use a duration, or integer columns of months, days and nanoseconds.",
    pa.lib.Type_SPARSE_UNION: "Use a struct with one field for each alternative.",
    pa.lib.Type_DENSE_UNION: "Use a struct with one field for each alternative.",
}


def _struct(kind: pa.DataType, path: str, depth: int) -> pa.DataType:
    names = [field.name for field in kind]
    if len(set(names)) < len(names):
        raise _refuse(path, "a struct with two fields of one name", "Rename one of them.")
    if any("\0" in name for name in names):
        raise _refuse(path, "a struct with NUL in a field's name", "Rename the field.")
    return pa.struct([_field(field, f"{path}.{field.name}", depth + 1) for field in kind])


def _dictionary(kind: pa.DataType, path: str, depth: int) -> pa.DataType:
    value = wire_type(kind.value_type, path, depth)
    return pa.dictionary(kind.index_type, value, ordered=kind.ordered) if is_kept_dictionary(kind) else value


def is_kept_dictionary(kind: pa.DataType) -> bool:
    """Whether a dictionary crosses as one: its values are flat. pyarrow itself cannot write a dictionary in one."""
    value = bare(kind.value_type)
    return not (is_.is_nested(value) or is_.is_dictionary(value) or is_.is_null(value))


def bare(kind: pa.DataType) -> pa.DataType:
    """A type without the extension and run-end types around it."""
    while isinstance(kind, pa.BaseExtensionType) or is_.is_run_end_encoded(kind):
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind.value_type
    return kind


def _decimal(kind: pa.DataType, path: str) -> pa.DataType:
    """``decimal128``: Polars aborts on nested 32- and 64-bit ones, and reads no 256-bit ones or negative scales."""
    digits, scale = kind.precision, kind.scale
    if scale < 0:
        digits, scale = digits - scale, 0
    digits = max(digits, scale)
    if digits > _MAX_DIGITS:
        raise _refuse(path, kind, f"Cast it to a decimal of at most {_MAX_DIGITS} digits, or to text.")
    return pa.decimal128(digits, scale)


def _timestamp(kind: pa.DataType, path: str) -> pa.DataType:
    zone = kind.tz
    if not zone or zone == "UTC":
        return kind
    if zone[0] in "+-" or zone == "Z":  # the same instants: Polars reads no offsets
        return pa.timestamp(kind.unit, "UTC")
    if not _is_known_zone(zone):
        raise _refuse(path, kind, "Its zone is not in the time zone database: use one that is, or UTC.")
    return kind


@lru_cache(maxsize=256)
def _is_known_zone(zone: str) -> bool:
    """Whether Polars, whose copy of the time zone database differs from Python's, knows ``zone``."""
    import polars  # only tables with zones other than UTC need it here

    try:  # with a row: without one, Polars panics where it would refuse
        polars.from_arrow(pa.table({"x": pa.nulls(1, pa.timestamp("us", zone))}))
    except polars.exceptions.PolarsError:
        return False
    return True


def _refuse(path: str, kind: pa.DataType | str, hint: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"Column {path!r} is {kind}, which has no exact form on the wire.",
        hint=hint,
        details={"column": path, "type": str(kind)},
    )
