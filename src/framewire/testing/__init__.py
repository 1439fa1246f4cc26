"""For tests: Hypothesis strategies for tables of every type that the wire carries, and a naive model of their values.

:mod:`framewire.testing.store` is the conformance suite of body stores.

The strategies are derived from Arrow types, so that a type which is added to ``WIRE_KINDS`` is drawn at every depth at
once. What they draw is as ugly as Arrow allows: offsets at every level, values that lie under nulls, dictionaries with
values that nothing uses, views into shared buffers, chunks with dictionaries of their own, and no rows at all.

Importing this module imports neither pytest nor Hypothesis; asking for a strategy imports Hypothesis.
"""

from __future__ import annotations

from framewire.testing._check import check_tables, exact_values
from framewire.testing._kinds import EXTRA_KINDS, WIRE_KINDS, arrow_types, kinds_of, schemas
from framewire.testing._values import arrays, tables

__all__ = [
    "EXTRA_KINDS",
    "WIRE_KINDS",
    "arrays",
    "arrow_types",
    "check_tables",
    "exact_values",
    "kinds_of",
    "schemas",
    "tables",
]
