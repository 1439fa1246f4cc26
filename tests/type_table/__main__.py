"""``python -m tests.type_table`` (``make type-table``): prints the type table as measured, input kind by output form."""

from __future__ import annotations

from tests.type_table._measure import type_table

if __name__ == "__main__":
    print(type_table(), end="")
