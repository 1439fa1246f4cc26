"""Arrow types: predicates, walks over nested types, and the types that stand in for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

TICKS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks per second, by the unit of a time type."""
ENUM_KEY: Final = b"_PL_ENUM_VALUES"
"""Polars writes an Enum's categories under this field metadata key, or this with a version number (2.1: ``..._VALUES2``)."""


def is_view(dtype: pa.DataType) -> bool:
    """Whether the type is ``string_view`` or ``binary_view``."""
    return bool(pa.types.is_string_view(dtype) or pa.types.is_binary_view(dtype))


def is_list_view(dtype: pa.DataType) -> bool:
    """Whether the type is ``list_view`` or ``large_list_view``, whose lists may share items and lie in any order."""
    return bool(pa.types.is_list_view(dtype) or pa.types.is_large_list_view(dtype))


def is_flat(dtype: pa.DataType) -> bool:
    """Whether the type has no parts and exists, or has a stand-in, in Polars and in Python: intervals do not."""
    return dtype.id in _FLAT


_FLAT: Final = frozenset(
    dtype.id
    for dtype in (
        *(pa.null(), pa.bool_(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("s")),
        *(pa.duration("s"), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
        *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal32(1), pa.decimal64(1), pa.decimal128(1)),
        *(pa.decimal256(1), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()),
        *(pa.binary_view(), pa.binary(1)),
    )
)


def is_enum(field: pa.Field) -> bool:
    """Whether the field's metadata marks its dictionary as a Polars ``Enum``."""
    return any(key.startswith(ENUM_KEY) for key in field.metadata or ())


def bare_type(dtype: pa.DataType) -> pa.DataType:
    """A type without the extension and run-end types around it."""
    while isinstance(dtype, pa.BaseExtensionType) or pa.types.is_run_end_encoded(dtype):
        dtype = dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype.value_type
    return dtype


def children(dtype: pa.DataType) -> list[pa.Field]:
    """Fields directly within a type: a struct's, a list's items, a map's entries; also the values of dictionaries and
    run ends and the storage of extension types, in a field without a name. Unions count as types without parts.
    """
    if dtype.id in _FLAT or pa.types.is_union(dtype):
        return []
    if isinstance(dtype, pa.BaseExtensionType):
        return [pa.field("", dtype.storage_type)]
    if pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
        return [pa.field("", dtype.value_type)]
    return [dtype.field(i) for i in range(dtype.num_fields)]


def with_children(dtype: pa.DataType, fields: Sequence[pa.Field]) -> pa.DataType:
    """``dtype`` over other ``fields``, in the order of :func:`children`. An extension type gives way to its storage."""
    if pa.types.is_struct(dtype):
        return pa.struct(fields)
    field = fields[0]
    if isinstance(dtype, pa.BaseExtensionType):
        return field.type
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, field.type, dtype.ordered)
    if pa.types.is_run_end_encoded(dtype):
        return pa.run_end_encoded(dtype.run_end_type, field.type)
    if pa.types.is_map(dtype):
        return pa.map_(field.type.field(0), field.type.field(1), dtype.keys_sorted)
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(field, dtype.list_size)
    if pa.types.is_list_view(dtype):
        return pa.list_view(field)
    if pa.types.is_large_list_view(dtype):
        return pa.large_list_view(field)
    return pa.large_list(field) if pa.types.is_large_list(dtype) else pa.list_(field)


def any_type(predicate: Callable[[pa.DataType], bool], dtype: pa.DataType) -> bool:
    """Whether ``predicate`` holds for ``dtype`` or for any type within it."""
    return predicate(dtype) or any(any_type(predicate, field.type) for field in children(dtype))


def map_type(function: Callable[[pa.DataType], pa.DataType], dtype: pa.DataType) -> pa.DataType:
    """``dtype`` with each innermost type replaced by ``function`` of it. Extension types give way to their storage."""
    fields = children(dtype)
    if not fields:
        return dtype if pa.types.is_struct(dtype) else function(dtype)
    return with_children(dtype, [field.with_type(map_type(function, field.type)) for field in fields])


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """``dtype`` with string and binary views replaced by ``large_string`` and ``large_binary``, at any depth."""
    return map_type(lambda leaf: _PLAIN.get(leaf, leaf), dtype)


_PLAIN: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` for a peer that does not read views."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])
