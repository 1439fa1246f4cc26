"""The type table, measured: every sample is published, fetched and given in each form."""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from framewire.client import fetch
from framewire.errors import S2SPError
from framewire.frame import Form, to_form
from framewire.plane import DataPlane
from framewire.table import to_table
from tests.type_table._samples import SECTIONS, Sample, Section

__all__ = ["Row", "measure", "type_table"]

_COLUMN: Final = "x"


class Row(NamedTuple):
    """What became of one sample: ``exact`` or ``decoded`` and to what, or ``refused`` and the error's text.

    Attributes:
        name: The kind of value.
        wire: What publishing made of it; when it refuses, the forms are empty.
        polars: What arrives as ``pl.DataFrame`` and ``pl.LazyFrame``.
        arrow: What arrives as ``pa.Table``, ``pa.RecordBatchReader`` and ``pd.DataFrame``.
        rows: What arrives as ``list[dict]``.
    """

    name: str
    wire: str
    polars: str = ""
    arrow: str = ""
    rows: str = ""


def measure(section: Section) -> Iterator[Row]:
    """Publish and fetch each sample of a section."""
    with DataPlane() as plane:
        for sample in section.samples:
            yield _measure(plane, sample, section.title)


def _measure(plane: DataPlane, sample: Sample, title: str) -> Row:
    made = sample.make()
    data, own = _as_input(made, title)
    try:
        table = to_table(data)
    except S2SPError as error:
        return Row(sample.name, _refused(error))
    handle = plane.publish(table)
    body = fetch(handle.resource_url)
    plane.revoke(handle)
    forms = [_polars(body, Form.POLARS_FRAME), _polars(body, Form.POLARS_LAZY)]
    arrows = [_arrow(body, table, form) for form in (Form.ARROW_TABLE, Form.ARROW_READER)]
    if _is_installed("pandas"):
        arrows.append(_arrow(body, table, Form.PANDAS_FRAME))
    # The table has one column for these: it would be wrong to show it where they differ.
    assert len(set(forms)) == len(set(arrows)) == 1, (sample.name, forms, arrows)
    kind = table.schema.field(_COLUMN).type
    if (back := _rows_of(body)) is not None and isinstance(made, list):
        is_exact = _is_same(made, back)
    else:
        is_exact = own is not None and (own == kind or (title == "pandas" and _shape(own) == _shape(kind)))
    return Row(sample.name, _cell(is_exact, kind), forms[0], arrows[0], _rows(body))


def _is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _as_input(made: Any, title: str) -> tuple[Any, pa.DataType | None]:
    """The sample as a tool returns it, and its type in its library's own Arrow export, if there is one."""
    if isinstance(made, list):
        return [{_COLUMN: value} for value in made], _own_type(made)
    if isinstance(made, pa.Array):
        return pa.table({_COLUMN: made}), made.type
    if isinstance(made, str):
        duckdb = importlib.import_module("duckdb")
        relation = duckdb.sql(f"SELECT {made} AS {_COLUMN}")
        try:
            return relation, relation.to_arrow_table().schema.field(_COLUMN).type
        except duckdb.Error:
            return relation, None
    frame = made.to_frame(_COLUMN)
    return frame, _own_type(made)


def _own_type(values: Any) -> pa.DataType | None:
    """What pyarrow itself makes of Python values or a pandas series, if anything."""
    try:
        if hasattr(values, "__arrow_c_stream__") and hasattr(values, "to_arrow"):  # Polars: with its views as views
            return pa.chunked_array(values).type
        return pa.array(values, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _is_same(given: list[Any], back: list[Any]) -> bool:
    """Whether Python values came back equal, and of the same offset."""
    pairs = [
        (value.tolist() if hasattr(value, "tolist") else value, got) for value, got in zip(given, back, strict=True)
    ]
    if any(isinstance(value, dt.datetime) and value.utcoffset() != got.utcoffset() for value, got in pairs if got):
        return False
    return all(_covers(value, got) for value, got in pairs)


def _covers(value: Any, got: Any) -> bool:
    """Equal; of a dict, with null for the keys that other rows have."""
    if isinstance(value, dict):
        return all(value.get(key) == item for key, item in got.items())
    return bool(value == got)


def _cell(is_exact: bool, kind: Any) -> str:
    text = str(kind).replace(" not null", "").replace("item: ", "").replace("element: ", "")
    return f"{'exact' if is_exact else 'decoded'} `{text}`"


def _refused(error: S2SPError) -> str:
    return f"refused: {error.message}"


def _polars(body: pa.Table, form: Form) -> str:
    """Exact where Polars gives the same Arrow type back, the width of offsets aside."""
    try:
        frame: Any = to_form(body, form)
    except S2SPError as error:
        return _refused(error)
    frame = frame.collect() if form is Form.POLARS_LAZY else frame
    back = frame.to_arrow().schema.field(_COLUMN).type
    return _cell(_shape(back) == _shape(body.schema.field(_COLUMN).type), frame.schema[_COLUMN])


def _shape(kind: pa.DataType) -> str:
    """A type without what only says how it is laid out: Polars has one layout for text, lists and codes each."""
    if pa.types.is_dictionary(kind):
        return f"dictionary of {_shape(kind.value_type)}"
    text = str(kind).replace("large_", "").replace("_view", "")
    return text.replace("item: ", "").replace("element: ", "").replace(" not null", "")


def _arrow(body: pa.Table, table: pa.Table, form: Form) -> str:
    made: Any = to_form(body, form)
    if form is Form.ARROW_READER:
        made = made.read_all()
    pandas = form is Form.PANDAS_FRAME
    kind = made[_COLUMN].dtype.pyarrow_dtype if pandas else made.schema.field(_COLUMN).type
    return _cell(kind == table.schema.field(_COLUMN).type, kind)


def _rows_of(body: pa.Table) -> list[Any] | None:
    try:
        return [row[_COLUMN] for row in to_form(body, Form.ROWS)]
    except S2SPError:
        return None


def _rows(body: pa.Table) -> str:
    try:
        rows = to_form(body, Form.ROWS)
    except S2SPError as error:
        return _refused(error)
    return _cell(True, type(rows[0][_COLUMN]).__name__)


_HEAD: Final = (
    "sent",
    "on the wire",
    "`pl.DataFrame`, `pl.LazyFrame`",
    "`pa.Table`, reader, `pd.DataFrame`",
    "`list[dict]`",
)


def type_table() -> str:
    """The type table as Markdown: input kind by output form, one section for each route in.

    A section whose library is not installed says so in place of its table.
    """
    parts = []
    for section in SECTIONS:
        parts.append(f"### {section.title}\n")
        if section.library and not _is_installed(section.library):
            parts.append(f"{section.library} is not installed.\n")
            continue
        lines = ["| " + " | ".join(_HEAD) + " |", "|" + " --- |" * len(_HEAD)]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in measure(section)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
