"""A table in the form that a consumer function asks for, each value exact or refused by name.

Arrow's own forms take every type, and so does pandas (with Arrow-backed columns). Polars and Python do not: some types
have no counterpart there, and some values would be altered without a word. ``_exact`` finds those before anything is
converted. The table of types is ``docs/reference/frames.md``.
"""

from __future__ import annotations

import collections.abc
import enum
import importlib
import sys
import types
import typing
from typing import Annotated, Any, Final, Literal

import pyarrow as pa

from framewire.arrow.cast import without_views
from framewire.errors import S2SPError
from framewire.frame._polars import to_polars
from framewire.frame._python import to_rows

if typing.TYPE_CHECKING:
    import polars as pl

    from framewire.typing import Frame

__all__ = ["FORMS", "Form", "form_of", "to_form"]


class Form(enum.Enum):
    """The forms in which a consumer function can receive a table; the value is how its annotation is written."""

    POLARS_FRAME = "pl.DataFrame"
    POLARS_LAZY = "pl.LazyFrame"
    ARROW_TABLE = "pa.Table"
    ARROW_READER = "pa.RecordBatchReader"
    PANDAS_FRAME = "pd.DataFrame"
    ROWS = "list[dict]"


FORMS: Final = tuple(Form)
"""Every form, the default first."""

_CLASSES: Final = {
    Form.POLARS_FRAME: ("polars", "DataFrame"),
    Form.POLARS_LAZY: ("polars", "LazyFrame"),
    Form.ARROW_TABLE: ("pyarrow", "Table"),
    Form.ARROW_READER: ("pyarrow", "RecordBatchReader"),
    Form.PANDAS_FRAME: ("pandas", "DataFrame"),
}


def form_of(annotation: Any) -> Form | None:
    """Return the form that an annotation asks for.

    Args:
        annotation: A resolved annotation (the object, not its text). ``Annotated[...]``, ``Optional[...]`` and type
            aliases are looked through; a union of frames asks for its first. Subclasses of frames are not frames:
            framewire could not build them. Rows are bare ``list``, or a ``list``, ``Sequence`` or ``Iterable`` of
            ``dict``, ``Mapping`` or a ``TypedDict``. pandas is never imported for this: an annotation that names it has
            imported it.

    Returns:
        The form, or None when the annotation is not a frame.
    """
    if type(annotation).__name__ == "TypeAliasType":  # `type Rows = ...`, Python 3.12
        return form_of(annotation.__value__)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return form_of(args[0])
    if origin is typing.Union or origin is types.UnionType:
        members = [form_of(arg) for arg in args if arg is not types.NoneType]
        return members[0] if None not in members else None
    if annotation is list or origin in _ROW_CONTAINERS:
        return Form.ROWS if _holds_rows(annotation, args) else None
    for form, (module, name) in _CLASSES.items():
        if annotation is not None and annotation is getattr(sys.modules.get(module), name, None):
            return form
    return None


_ROW_CONTAINERS: Final = (list, collections.abc.Sequence, collections.abc.Iterable)


def _holds_rows(annotation: Any, args: tuple[Any, ...]) -> bool:
    return bool(args and _is_row(args[0])) or annotation in (list, typing.List)  # noqa: UP006


def _is_row(annotation: Any) -> bool:
    base = typing.get_origin(annotation) or annotation
    rows = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
    return base in rows or typing.is_typeddict(base)


@typing.overload
def to_form(table: pa.Table, form: Literal[Form.POLARS_FRAME]) -> pl.DataFrame: ...
@typing.overload
def to_form(table: pa.Table, form: Literal[Form.POLARS_LAZY]) -> pl.LazyFrame: ...
@typing.overload
def to_form(table: pa.Table, form: Literal[Form.ROWS]) -> list[dict[str, Any]]: ...
@typing.overload
def to_form(table: pa.Table, form: Form) -> Frame: ...
def to_form(table: pa.Table, form: Form) -> Frame:
    """Convert ``table`` to ``form``.

    Args:
        table: n rows, any type that crosses the wire. It is not changed; its buffers are shared where they can be.
        form: One of :data:`FORMS`.

    Returns:
        The frame: the same columns in the same order, n rows. Rows are dicts of exact Python values; pandas columns are
        Arrow-backed (``pd.ArrowDtype``), so that pandas alters none of them. In the Arrow and pandas forms text is
        ``large_string`` where the wire has views, which pyarrow and pandas can neither filter nor sort.

    Raises:
        UnsupportedTypeError: The form has no counterpart of a column's type; the message names both.
        UnsupportedValueError: A value has no exact counterpart; the message names column and row, not the value.
        BadBodyError: Polars refused the table for any other reason, a panic included.
        S2SPError: pandas was asked for and is not installed.
    """
    match form:
        case Form.ARROW_TABLE:
            return without_views(table)
        case Form.ARROW_READER:
            return without_views(table).to_reader()
        case Form.POLARS_FRAME:
            return to_polars(table)
        case Form.POLARS_LAZY:
            return to_polars(table).lazy()
        case Form.PANDAS_FRAME:
            return _to_pandas(without_views(table))
        case Form.ROWS:
            return to_rows(table)


def _to_pandas(table: pa.Table) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise S2SPError(
            "pandas is not installed, so the table cannot be converted to a pd.DataFrame.",
            hint="Run: pip install 'framewire[pandas]'",
        ) from None
    return table.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)
