"""A naive model of the values of a column, and checks that are run on drawn tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from framewire.testing._kinds import WIRE_KINDS, arrow_types, kinds_of, strategies
from framewire.testing._values import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from hypothesis.strategies import SearchStrategy

__all__ = ["check_tables", "exact_values"]

_types = pa.types


def exact_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, as Python values that are equal exactly when the Arrow values are.

    Written value by value and for nothing but clarity: it is what conversions are compared with. Floats are
    hexadecimal text (so that -0.0 differs from 0.0 and NaN equals NaN), times are counts of their unit, decimals text,
    maps lists of pairs, dictionaries and extensions what they stand for.
    """
    return [_exact(scalar) for scalar in column]


def _exact(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if isinstance(kind, pa.BaseExtensionType) or _types.is_dictionary(kind):
        return _exact(scalar.value)
    if _types.is_struct(kind):
        return {name: _exact(value) for name, value in scalar.items()}
    if _types.is_map(kind):
        return [(_exact(entry["key"]), _exact(entry["value"])) for entry in _map_entries(scalar)]
    if _types.is_nested(kind):
        return [_exact(value) for value in scalar.values]
    if _types.is_floating(kind):
        return float(scalar.as_py()).hex()
    if _types.is_temporal(kind):
        return scalar.value
    return str(scalar.as_py()) if _types.is_decimal(kind) else scalar.as_py()


def _map_entries(scalar: pa.Scalar) -> list[dict[str, pa.Scalar]]:
    """A map's entries by position: the fields may have other names."""
    return [dict(zip(("key", "value"), (entry[0], entry[1]), strict=True)) for entry in scalar.values]


def check_tables(
    check: Callable[..., None],
    *more: SearchStrategy[Any],
    kinds: Collection[str] = WIRE_KINDS,
    settings: Any = None,
    **limits: int,
) -> None:
    """Run a check on drawn tables, and see to it that every kind of type was among them.

    A random draw leaves some kind out now and then; for such a one a few tables of it are drawn on purpose.

    Args:
        check: Is given the table, then what ``more`` drew. Raises when something is wrong.
        more: Further strategies, as for the choice of rows.
        kinds: The kinds to draw.
        settings: Hypothesis settings; by default those of the loaded profile.
        limits: ``max_depth``, ``max_columns`` and ``max_rows`` as for ``tables``.

    Raises:
        AssertionError: The check failed, or a kind was never drawn.
    """
    st = strategies()
    from hypothesis import given
    from hypothesis import settings as make_settings

    seen: set[str] = set()

    def run(drawn: tuple[Any, ...]) -> None:
        for field in drawn[0].schema:
            seen.update(kinds_of(field.type))
        check(*drawn)

    profile = settings or make_settings()
    drawn: SearchStrategy[tuple[Any, ...]] = st.tuples(tables(kinds=kinds, **limits), *more)
    profile(given(drawn)(run))()
    few = make_settings(profile, max_examples=5)
    for kind in sorted(set(kinds) - seen):
        depth = limits.get("max_depth", 3)
        named = arrow_types(kinds=kinds, max_depth=depth, outermost=kind).map(lambda one: pa.schema([("c0", one)]))
        drawn = st.tuples(tables(named), *more)
        few(given(drawn)(run))()
    assert seen == set(kinds), f"never drawn: {sorted(set(kinds) - seen)}"
