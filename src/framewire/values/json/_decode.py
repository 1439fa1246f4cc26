"""Converts JSON values to Arrow columns of any known type: the exact inverse of encoding, or an error that names the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from framewire.errors import UnsupportedTypeError
from framewire.values.json._refusal import fail
from framewire.values.json._scalars import bound_nulls, build_array, decode_scalars
from framewire.values.location import ValueLocation

__all__ = ["decode_array"]

_types = pa.types


def decode_array(
    values: Sequence[Any], kind: pa.DataType, location: ValueLocation, *, nullable: bool = True
) -> pa.Array:
    """Build the column of type ``kind`` that encodes to ``values``."""
    if not nullable:
        for position, value in enumerate(values):
            if value is None:
                fail(location, position, value, kind, "is not allowed")
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, decode_array(values, kind.storage_type, location))
    if _types.is_dictionary(kind):
        return _dictionary(values, kind, location)
    if _types.is_run_end_encoded(kind):
        raise UnsupportedTypeError(f"Type {kind} has no exact form on the wire.", hint="Decode the run ends first.")
    if _types.is_struct(kind):
        return _struct(values, kind, location)
    if _types.is_fixed_size_list(kind):
        return _fixed_size_list(values, kind, location)
    if _types.is_nested(kind):
        return _list(values, kind, location)
    return decode_scalars(values, kind, location)


def _dictionary(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    """Build a dictionary in order of appearance: JSON holds neither unused entries nor their order."""
    decoded = decode_array(values, kind.value_type, location)
    nested = _types.is_nested(kind.value_type)  # pyarrow finds no distinct values of these
    codes, distinct = (list(range(len(decoded))), decoded) if nested else _distinct(decoded)
    known = [None if value is None else code for value, code in zip(values, codes, strict=True)]
    indices = build_array(known, values, kind.index_type, location)
    return pa.DictionaryArray.from_arrays(indices, distinct, ordered=kind.ordered)


def _distinct(decoded: pa.Array) -> tuple[list[int], pa.Array]:
    views = _types.is_string_view(decoded.type) or _types.is_binary_view(decoded.type)
    large = pa.large_string() if _types.is_string_view(decoded.type) else pa.large_binary()
    encoded = (decoded.cast(large) if views else decoded).dictionary_encode()
    distinct = encoded.dictionary.cast(decoded.type) if views else encoded.dictionary
    return encoded.indices.fill_null(0).to_pylist(), distinct


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    if None not in values:
        return None
    return pa.array([value is not None for value in values], pa.bool_()).buffers()[1]


def _struct(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    names = {field.name for field in fields}
    for position, value in enumerate(values):
        if value is not None and (not isinstance(value, Mapping) or not names.issuperset(value)):
            fail(
                location, position, value, kind, "has fields that the type lacks" if isinstance(value, Mapping) else ""
            )
    children = []
    for field in fields:
        items = [None if value is None else value.get(field.name) for value in values]
        inner = location.field(field.name)
        if not field.nullable:
            _require(items, values, field.type, inner)
        children.append(decode_array(items, field.type, inner))
    return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=children)


def _require(items: Sequence[Any], parents: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> None:
    """Refuse a null in a field that is not nullable, unless its parent is null."""
    for position, (item, parent) in enumerate(zip(items, parents, strict=True)):
        if item is None and parent is not None:
            fail(location, position, item, kind, "is not allowed")


def _arrays(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> None:
    for position, value in enumerate(values):
        if value is not None and (isinstance(value, (str, bytes)) or not isinstance(value, Sequence)):
            fail(location, position, value, kind)


def _fixed_size_list(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    _arrays(values, kind, location)
    size, field = kind.list_size, kind.value_field
    for position, value in enumerate(values):
        if value is not None and len(value) != size:
            fail(location, position, value, kind, "has another number of elements")
    bound_nulls(values, size, kind, location)
    items = list(chain.from_iterable([None] * size if value is None else value for value in values))
    inner = location.items(range(0, len(items), max(size, 1)))
    if not field.nullable:
        parents = [value for value in values for _ in range(size)]
        _require(items, parents, field.type, inner)
    child = decode_array(items, field.type, inner)
    return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=[child])


def _list(values: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    """Build lists, large lists, both kinds of list views, and maps."""
    _arrays(values, kind, location)
    sizes = np.array([0 if value is None else len(value) for value in values], np.int64)
    items: list[Any] = list(chain.from_iterable(value for value in values if value is not None))
    wide = _types.is_large_list(kind) or _types.is_large_list_view(kind)
    dtype = np.int64 if wide else np.int32
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))).astype(dtype)
    inner = location.items(offsets.tolist())
    if _types.is_map(kind):
        child = _entries(items, kind, inner)
    else:
        child = decode_array(items, kind.value_field.type, inner, nullable=kind.value_field.nullable)
    buffers = [_validity(values), pa.py_buffer(offsets)]
    if _types.is_list_view(kind) or _types.is_large_list_view(kind):
        buffers = [buffers[0], pa.py_buffer(offsets[:-1].copy()), pa.py_buffer(sizes.astype(dtype))]
    return pa.Array.from_buffers(kind, len(values), buffers, children=[child])


def _entries(items: Sequence[Any], kind: pa.DataType, location: ValueLocation) -> pa.Array:
    for position, item in enumerate(items):
        if not isinstance(item, Mapping) or item.keys() != {"key", "value"}:
            fail(location, position, item, kind, "is not a map entry")
    key, value = kind.key_field, kind.item_field
    keys = decode_array([item["key"] for item in items], key.type, location, nullable=False)
    contents = decode_array([item["value"] for item in items], value.type, location, nullable=value.nullable)
    return pa.StructArray.from_arrays([keys, contents], fields=[key, value])
