"""Strategies for arrays and tables of any type, as ugly as Arrow allows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from framewire.testing._kinds import TEXT_KINDS, UNITS, WIRE_KINDS, kinds_of, schemas, strategies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["arrays", "tables"]

_types = pa.types
_FLOATS: Final = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.1, 1e-45, 16_777_217.0)


def arrays(kind: pa.DataType, rows: int, *, nullable: bool = True) -> SearchStrategy[pa.Array]:
    """Valid arrays of one type.

    Args:
        kind: Any type that ``arrow_types`` draws.
        rows: The length. The array may be a slice of a longer one.
        nullable: Whether nulls may be drawn. What lies under them is as arbitrary as any value.
    """
    st = strategies()
    strategy: SearchStrategy[pa.Array] = st.composite(lambda draw: _draw_array(draw, st, kind, rows, nullable))()
    return strategy


def tables(
    schema: pa.Schema | SearchStrategy[pa.Schema] | None = None,
    *,
    kinds: Collection[str] = WIRE_KINDS,
    max_depth: int = 3,
    max_columns: int = 4,
    max_rows: int = 8,
) -> SearchStrategy[pa.Table]:
    """Tables of 0 to ``max_rows`` rows in 0 to 3 chunks, cut elsewhere in each column.

    Args:
        schema: A schema, or a strategy for one; by default ``schemas`` of the arguments that follow.
        kinds: As for ``schemas``.
        max_depth: As for ``schemas``.
        max_columns: As for ``schemas``.
        max_rows: The most rows.
    """
    st = strategies()
    if schema is None:
        schema = schemas(kinds=kinds, max_depth=max_depth, max_columns=max_columns)

    def one(draw: DrawFn) -> pa.Table:
        drawn = schema if isinstance(schema, pa.Schema) else draw(schema)
        rows = draw(st.integers(0, max_rows))
        columns = []
        for field in drawn:
            cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=2)))
            bounds = [0, *cuts, rows]
            chunks = [
                _draw_array(draw, st, field.type, stop - start, field.nullable) for start, stop in pairwise(bounds)
            ]
            columns.append(pa.chunked_array(chunks, type=field.type))
        return pa.Table.from_arrays(columns, schema=drawn)

    strategy: SearchStrategy[pa.Table] = st.composite(one)()
    return strategy


def _draw_array(draw: DrawFn, st: Any, kind: pa.DataType, rows: int, nullable: bool) -> pa.Array:
    """Some rows more than asked for, nulls laid over them, and a slice of the result."""
    before, after = draw(st.sampled_from([(0, 0), (0, 0), (0, 1), (1, 0), (3, 2)]))
    total = before + rows + after
    if _types.is_null(kind):
        return pa.nulls(total).slice(before, rows)
    masked = draw(st.lists(st.booleans(), min_size=total, max_size=total)) if nullable and draw(st.booleans()) else []
    validity = pa.array(masked, pa.bool_()).buffers()[1] if masked else None
    if _types.is_dictionary(kind):
        array = _draw_dictionary(draw, st, kind, total, validity)
    elif _types.is_nested(kind):
        array = _draw_nested(draw, st, kind, total, validity)
    else:
        whole = _draw_scalars(draw, st, kind, total)
        array = pa.Array.from_buffers(kind, total, [validity, *whole.buffers()[1:]], offset=whole.offset)
    return array.slice(before, rows)


def _draw_dictionary(draw: DrawFn, st: Any, kind: pa.DataType, total: int, validity: pa.Buffer | None) -> pa.Array:
    """Distinct values, more than are used, codes of any integer type."""
    texts = draw(st.lists(_texts(st), min_size=1, max_size=5, unique=True))
    values = _text_array(texts, kind.value_type)
    codes = pa.array(draw(st.lists(st.integers(0, len(texts) - 1), min_size=total, max_size=total)), kind.index_type)
    indices = pa.Array.from_buffers(kind.index_type, total, [validity, codes.buffers()[1]])
    return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)


def _draw_nested(draw: DrawFn, st: Any, kind: pa.DataType, total: int, validity: pa.Buffer | None) -> pa.Array:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    if _types.is_struct(kind):
        children = [_draw_array(draw, st, field.type, total, field.nullable) for field in fields]
        return pa.Array.from_buffers(kind, total, [validity], children=children)
    if _types.is_fixed_size_list(kind):
        child = _draw_array(draw, st, fields[0].type, total * kind.list_size, fields[0].nullable)
        return pa.Array.from_buffers(kind, total, [validity], children=[child])
    wide = _types.is_large_list(kind) or _types.is_large_list_view(kind)
    dtype = np.int64 if wide else np.int32
    sizes = np.array(draw(st.lists(st.integers(0, 3), min_size=total, max_size=total)), dtype)
    offsets = np.concatenate((np.zeros(1, dtype), np.cumsum(sizes, dtype=dtype)))
    elements = int(offsets[-1])
    buffers = [validity, pa.py_buffer(offsets)]
    if _types.is_list_view(kind) or _types.is_large_list_view(kind):
        elements += 2  # lists that overlap, in any order, and elements that are in none
        starts = [draw(st.integers(0, elements - int(size))) for size in sizes]
        buffers = [validity, pa.py_buffer(np.array(starts, dtype)), pa.py_buffer(sizes)]
    if _types.is_map(kind):
        keys = _draw_array(draw, st, kind.key_type, elements, False)
        items = _draw_array(draw, st, kind.item_type, elements, kind.item_field.nullable)
        child = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    else:
        child = _draw_array(draw, st, fields[0].type, elements, fields[0].nullable)
    return pa.Array.from_buffers(kind, total, buffers, children=[child])


def _texts(st: Any) -> Any:
    """Text short enough to lie in its view, and text that is too long for that."""
    letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    return st.one_of(letters, letters.map(lambda text: text + "longer than twelve bytes"), st.just("NaN"))


def _text_array(texts: list[str], kind: pa.DataType) -> pa.Array:
    return pa.array([text.encode() for text in texts] if "binary" in str(kind) else texts, kind)


def _draw_scalars(draw: DrawFn, st: Any, kind: pa.DataType, total: int) -> pa.Array:
    """An array without nulls."""

    def values(element: Any) -> list[Any]:
        return draw(st.lists(element, min_size=total, max_size=total))

    (name,) = kinds_of(kind)
    if name in TEXT_KINDS:
        return _text_array(values(_texts(st)), kind)
    if name == "fixed_size_binary":
        width = kind.byte_width
        return pa.array(values(st.binary(min_size=width, max_size=width)), kind)
    if name == "bool":
        return pa.array(values(st.booleans()), kind)
    if name.startswith("float"):
        width = kind.bit_width
        numbers = values(st.one_of(st.sampled_from(_FLOATS), st.floats(width=width)))
        with np.errstate(over="ignore"):
            return pa.array(np.array(numbers, f"f{width // 8}"), kind)
    if name.startswith("decimal"):
        limit = 10**kind.precision - 1
        unscaled = values(st.one_of(st.just(0), st.integers(-limit, limit)))
        raw = b"".join(value.to_bytes(kind.byte_width, "little", signed=True) for value in unscaled)
        return pa.Array.from_buffers(kind, total, [None, pa.py_buffer(raw)])
    return _ticks(values, st, kind, name, total)


def _ticks(values: Callable[[Any], list[Any]], st: Any, kind: pa.DataType, name: str, total: int) -> pa.Array:
    """Integers, and the temporal types, which are integers of a unit: their whole range, years beyond 9999 and all."""
    width, step = kind.bit_width, 1
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    likely = st.integers(-3, 3)
    if name.startswith("uint"):
        low, high, likely = 0, (1 << width) - 1, st.integers(0, 3)
    elif name == "date64":
        step = 86_400_000
        low, high = -(-low // step), high // step
    elif name in ("time32", "time64"):
        low, high, likely = (
            0,
            86_400 * UNITS[kind.unit] - 1,
            st.integers(0, 3),
        )
    elif "timestamp" in name:
        second = UNITS[kind.unit]
        likely = st.integers(-(10**9) * second, 4 * 10**9 * second)
    numbers = values(st.one_of(likely, st.integers(low, high)))
    dtype = f"{'u' if low == 0 and name.startswith('uint') else 'i'}{width // 8}"
    return pa.Array.from_buffers(kind, total, [None, pa.py_buffer(np.array([n * step for n in numbers], dtype))])
