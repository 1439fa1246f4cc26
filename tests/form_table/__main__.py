"""``python -m tests.form_table``: what each library can do with each type, as measured."""

from __future__ import annotations

from tests.form_table._measure import form_table

if __name__ == "__main__":
    print(form_table(), end="")
