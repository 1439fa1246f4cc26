"""The type table of docs/reference/types.md, measured: ``python -m tests.type_table`` prints it."""
