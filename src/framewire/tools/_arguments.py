"""The parameters that framewire adds to tools, and the near misses that they accept from models."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

_TEXT: Final[dict[str, Any]] = {"type": "string"}


def _list_of(kind: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kind}


def to_text(value: Any) -> str:
    """Convert an argument to text: text as it is, null to "" (not given), lists and objects to their JSON.

    The annotation stays ``str``, so that the SDK does not parse such text first (it would turn a column
    called ``null`` into "no columns named", which shows every column).
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row_ids_text(value: Any) -> str:
    """Convert as :func:`to_text` does; a lone number becomes a list of one."""
    return to_text(value if value is None or isinstance(value, str | list) else [value])


def _parameter(
    name: str, description: str, *forms: dict[str, Any], default: str = "", reader: Any = to_text
) -> inspect.Parameter:
    schema = forms[0] if len(forms) == 1 else {"anyOf": list(forms)}
    annotation = Annotated[str, BeforeValidator(reader), WithJsonSchema(schema), Field(description=description)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


RESOURCE_PARAMETERS: Final = (
    _parameter(
        "abstract_domains",
        "Columns to show: only those you must read, comma-separated or a JSON array. '_row_id' alone shows no values "
        "and tells the column names. Left out, every column of every row is returned.",
        _TEXT,
        _list_of(_TEXT),
    ),
    _parameter(
        "mode",
        "Where the other columns stay: 'async' behind resource_url, 'sync' inline in the reply.",
        {"type": "string", "enum": ["async", "sync"]},
        default="async",
    ),
)
"""Parameters added to a resource tool."""

CONSUMER_PARAMETERS: Final = (
    _parameter(
        "abstract_data",
        "JSON array of the rows you chose, each with its _row_id; columns you add are kept. "
        "Left out: the rows of row_ids, or every row.",
        _TEXT,
        _list_of({"type": "object"}),
    ),
    _parameter(
        "resource_url", "The resource_url of a resource tool's reply, unchanged. Every column comes from there.", _TEXT
    ),
    _parameter(
        "body_data",
        "Instead of resource_url: the whole reply of a mode='sync' call (its schema keeps types), or its body alone.",
        _TEXT,
        {"type": "object"},
        _list_of({"type": "object"}),
    ),
    _parameter(
        "column_mapping",
        'JSON object that renames columns for this tool, for example {"areaDesc": "location"}.',
        _TEXT,
        {"type": "object", "additionalProperties": _TEXT},
    ),
    _parameter(
        "row_ids",
        'Rows to use, in this order, as _row_ids and inclusive ranges: "0,2,5-99,200-" or [0, 2, "5-99"].',
        _TEXT,
        _list_of({"anyOf": [{"type": "integer"}, _TEXT]}),
        reader=_row_ids_text,
    ),
)
"""Parameters added to a consumer tool."""

RESOURCE_TEACHING: Final = (
    "S2SP: set abstract_domains to ONLY the columns you need for filtering or reasoning; fewer columns, fewer tokens. "
    "The reply shows those columns and _row_id; the other columns stay on the server for a consumer tool.\n"
    "Pass the reply's resource_url to the consumer tool, with the rows you chose. "
    "mode='async' (default) or 'sync' (body inline)."
)
CONSUMER_TEACHING: Final = (
    "S2SP consumer: pass resource_url from a resource tool's reply (or a mode='sync' reply as body_data), and the rows "
    "to use as abstract_data (JSON rows with their _row_id) or row_ids.\n"
    "The tool fetches those rows with every column itself: do not copy other columns. Optional column_mapping renames "
    "columns."
)


def describe(description: str | None, doc: str | None, teaching: str) -> str:
    """Build the tool's description: the author's (or the function's docstring), then how to use the added parameters."""
    own = (description or doc or "").strip()
    return f"{own}\n\n{teaching}" if own else teaching
