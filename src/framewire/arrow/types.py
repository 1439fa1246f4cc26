"""Arrow types: what they are made of, and what stands in for them."""

from __future__ import annotations

import pyarrow as pa


def is_view(kind: pa.DataType) -> bool:
    """Whether the type is ``string_view`` or ``binary_view``."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """``dtype`` with string and binary views replaced by ``large_string`` and ``large_binary``, at any depth."""
    if dtype == pa.string_view():
        return pa.large_string()
    if dtype == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_struct(dtype):
        return pa.struct([_plain_field(dtype.field(i)) for i in range(dtype.num_fields)])
    if pa.types.is_map(dtype):
        return pa.map_(_plain_field(dtype.key_field), _plain_field(dtype.item_field), dtype.keys_sorted)
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(_plain_field(dtype.value_field), dtype.list_size)
    if pa.types.is_large_list(dtype):
        return pa.large_list(_plain_field(dtype.value_field))
    if pa.types.is_list(dtype):
        return pa.list_(_plain_field(dtype.value_field))
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, plain_type(dtype.value_type), dtype.ordered)
    return dtype


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` for a peer that does not read views."""
    return pa.schema([_plain_field(field) for field in schema])
