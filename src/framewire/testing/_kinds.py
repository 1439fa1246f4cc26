"""Every kind of Arrow type that a table may have, by name, and strategies that draw types of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["EXTRA_KINDS", "TEXT_KINDS", "UNITS", "WIRE_KINDS", "arrow_types", "kinds_of", "schemas", "strategies"]

_types = pa.types

_SCALARS: Final[dict[str, tuple[pa.DataType, ...]]] = {
    "null": (pa.null(),),
    "bool": (pa.bool_(),),
    **{str(kind): (kind,) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): (kind,) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float16": (pa.float16(),),
    "float32": (pa.float32(),),
    "float64": (pa.float64(),),
    "decimal32": (pa.decimal32(9, 3), pa.decimal32(4, 0)),
    "decimal64": (pa.decimal64(18, 18), pa.decimal64(12, 2)),
    "decimal128": (pa.decimal128(38, 10), pa.decimal128(5, 2), pa.decimal128(20, 0)),
    "decimal256": (pa.decimal256(76, 20),),
    "date32": (pa.date32(),),
    "date64": (pa.date64(),),
    "time32": (pa.time32("s"), pa.time32("ms")),
    "time64": (pa.time64("us"), pa.time64("ns")),
    "timestamp": tuple(map(pa.timestamp, ("s", "ms", "us", "ns"))),
    "zoned timestamp": tuple(
        pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ("UTC", "Asia/Tokyo", "+05:30")
    ),
    "duration": tuple(map(pa.duration, ("s", "ms", "us", "ns"))),
    **{str(kind): (kind,) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(kind): (kind,) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    "fixed_size_binary": (pa.binary(3), pa.binary(16), pa.binary(0)),
}
_NESTED: Final = frozenset(
    {"list", "large_list", "list_view", "large_list_view", "fixed_size_list", "struct", "map", "dictionary"}
)

_LISTS: Final[dict[str, Any]] = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
}

EXTRA_KINDS: Final = frozenset({"decimal256", "list_view", "large_list_view"})
"""Kinds that pyarrow has and a published table has not: they are refused or decoded at publish."""
WIRE_KINDS: Final = (frozenset(_SCALARS) | _NESTED) - EXTRA_KINDS
"""Kinds that a published table may have, as ``kinds_of`` names them."""

TEXT_KINDS: Final = frozenset({"string", "large_string", "string_view", "binary", "large_binary", "binary_view"})
_KEYS: Final = frozenset(
    {"int8", "int64", "uint64", "string", "large_string", "string_view", "binary", "date32", "bool"}
)
"""Kinds of map keys and dictionary values, here."""
_CODES: Final = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def strategies() -> Any:
    """``hypothesis.strategies``, or an error that says how to get it."""
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise ImportError("The strategies of framewire.testing need Hypothesis: pip install hypothesis") from error
    return strategies


def kinds_of(kind: pa.DataType) -> frozenset[str]:
    """The names of all kinds of types in a type, its own and those inside it: members of WIRE_KINDS or EXTRA_KINDS."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    if _types.is_map(kind):
        own, inner = "map", [kind.key_type, kind.item_type]
    elif _types.is_dictionary(kind):
        own, inner = "dictionary", [kind.value_type]
    elif _types.is_timestamp(kind):
        own = "timestamp" if kind.tz is None else "zoned timestamp"
    else:
        renamed = {"halffloat": "float16", "float": "float32", "double": "float64"}
        text = str(kind)
        own = renamed.get(text, text.split("<")[0].split("[")[0].split("(")[0])
    return frozenset({own}).union(*map(kinds_of, inner))


def arrow_types(
    *, kinds: Collection[str] = WIRE_KINDS, max_depth: int = 3, outermost: str | None = None
) -> SearchStrategy[pa.DataType]:
    """Arrow types of the given kinds, every kind as likely as any other.

    Args:
        kinds: Which kinds may be drawn, at any depth.
        max_depth: How many nested types may lie around a plain one.
        outermost: The kind of the type itself, if it matters.
    """
    st = strategies()
    strategy: SearchStrategy[pa.DataType] = st.composite(
        lambda draw: _draw_type(draw, st, kinds, max_depth, outermost)
    )()
    return strategy


def schemas(
    *, kinds: Collection[str] = WIRE_KINDS, max_depth: int = 3, max_columns: int = 4
) -> SearchStrategy[pa.Schema]:
    """Schemas with 1 to ``max_columns`` columns ``c0``, ``c1``, ..., some of which may not be null."""
    st = strategies()

    def one(draw: DrawFn) -> pa.Schema:
        count = draw(st.integers(1, max_columns))
        return pa.schema([_draw_field(draw, st, kinds, max_depth, f"c{i}") for i in range(count)])

    strategy: SearchStrategy[pa.Schema] = st.composite(one)()
    return strategy


def _draw_field(draw: DrawFn, st: Any, kinds: Collection[str], depth: int, name: str) -> pa.Field:
    kind = _draw_type(draw, st, kinds, depth)
    nullable = draw(st.sampled_from([True, True, True, False]))
    return pa.field(name, kind, nullable=nullable or _types.is_null(kind))


def _draw_type(draw: DrawFn, st: Any, kinds: Collection[str], depth: int, name: str | None = None) -> pa.DataType:
    if name is None:
        name = draw(st.sampled_from(sorted(set(kinds) & (_SCALARS.keys() | (_NESTED if depth > 0 else set())))))
    if name in _SCALARS:
        return draw(st.sampled_from(_SCALARS[name]))
    if name == "dictionary":
        values = sorted(TEXT_KINDS & set(kinds)) or ["string"]
        return pa.dictionary(
            draw(st.sampled_from(_CODES)), *_SCALARS[draw(st.sampled_from(values))], draw(st.booleans())
        )
    if name == "map":
        keys = sorted(_KEYS & set(kinds)) or ["string"]
        return pa.map_(*_SCALARS[draw(st.sampled_from(keys))], _draw_type(draw, st, kinds, depth - 1))
    if name == "struct":
        names = draw(st.lists(st.sampled_from(["a", "b", "c d", "é"]), max_size=3, unique=True))
        return pa.struct([_draw_field(draw, st, kinds, depth - 1, inner) for inner in names])
    item = _draw_field(draw, st, kinds, depth - 1, "item")
    return pa.list_(item, draw(st.integers(0, 3))) if name == "fixed_size_list" else _LISTS[name](item)
