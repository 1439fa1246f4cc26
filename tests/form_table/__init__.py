"""The table of forms and operations of docs/reference/frames.md, measured: ``python -m tests.form_table`` prints it."""
