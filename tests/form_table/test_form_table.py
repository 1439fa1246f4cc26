"""What each library can do with what it is handed, and that the page shows it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from framewire.frame import Form
from tests.form_table._measure import DIED, OPERATIONS, form_table, measure
from tests.form_table._operations import NAMES
from tests.form_table._samples import samples

measured = cache(measure)
TEXTS = [name for name in samples() if ("string" in name or "binary" in name) and " of " not in name]


@pytest.mark.parametrize("form", OPERATIONS, ids=lambda form: form.value)
def test_rows_of_every_type_are_chosen_and_shown(form: Form) -> None:
    """Where a library cannot even filter a frame for one column's sake, the frame is of no use."""
    for name, failures in measured(form).items():
        assert not {"filter", "take", "concat", "repr"} & set(failures), (name, failures)
        assert DIED not in failures.values(), (name, failures)


@pytest.mark.parametrize("form", [Form.ARROW_TABLE, Form.PANDAS_FRAME], ids=lambda form: form.value)
def test_all_operations_work_on_text_and_binary(form: Form) -> None:
    assert len(TEXTS) == 7
    assert {name: failures for name, failures in measured(form).items() if name in TEXTS and failures} == {}


def test_the_page_shows_what_is_measured() -> None:
    """Generate it anew between the markers: python -m tests.form_table."""
    page = (Path(__file__).parents[2] / "docs/reference/frames.md").read_text()
    shown = page.partition("<!-- measured: begin -->\n\n")[2].partition("\n<!-- measured: end -->")[0]
    assert form_table().splitlines() == shown.splitlines()


def test_every_operation_is_tried() -> None:
    for form, operations in OPERATIONS.items():
        assert set(NAMES) - set(operations()) <= ({"to_json"} if form is Form.ARROW_TABLE else set())
    assert len(samples()) > 35
