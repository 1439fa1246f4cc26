"""Converts the return value of a consumer's function to the tool's result, as the SDK does, after making it fit for JSON."""

from __future__ import annotations

import base64
import inspect
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pydantic_core
from mcp.server.mcpserver import Audio, Image
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, func_metadata
from mcp.types import CallToolResult, ContentBlock, InputRequiredResult, TextContent
from pydantic import BaseModel, ValidationError

from framewire import wire
from framewire.errors import S2SPError
from framewire.frame import Form, form_of
from framewire.table import to_table
from framewire.tools._reply import plain_reply
from framewire.tools._signature import Function
from framewire.values import json as json_values

_NON_FINITE: Final[dict[str, Any]] = {"enum": ["NaN", "Infinity", "-Infinity"]}
"""JSON has no such numbers; framewire writes them as these texts everywhere."""

_TABLE_HINT: Final = "The function should return fewer rows, or be a resource tool, which publishes its table."


@dataclass(frozen=True)
class Results:
    """Converter of one consumer tool's return values.

    Attributes:
        metadata: The SDK's interpretation of the return annotation.
        schema: JSON schema of the structured content, or None.
    """

    metadata: FuncMetadata
    schema: dict[str, Any] | None

    @classmethod
    def of(cls, function: Function) -> Results:
        """Read the return annotation; one that the SDK cannot use (a frame, an unknown class) gives plain text."""

        def probe() -> None: ...

        probe.__name__ = function.name
        plain = func_metadata(probe, structured_output=False)
        if function.returns is not inspect.Signature.empty and form_of(function.returns) in (None, Form.ROWS):
            probe.__annotations__ = {"return": function.returns}
            try:
                metadata = func_metadata(probe)
            except Exception:  # the SDK and pydantic have a dozen classes for this
                metadata = plain
            return cls(metadata, None if metadata.output_schema is None else _allow_non_finite(metadata.output_schema))
        return cls(plain, None)

    def convert(self, value: Any) -> CallToolResult | InputRequiredResult:
        """Convert ``value`` to a result. Blocks.

        - A ``CallToolResult``, MCP content, ``Image``, ``Audio`` and lists with these pass as in the SDK.
        - A frame becomes its rows, as in a plain reply, up to 1 MiB; an annotation other than a frame must allow rows.
        - Everything else is made fit for JSON (numpy scalars, ``NaT``, bytes, non-finite floats), then converted by the
          SDK; where there is structured content, the text is made from the same values.

        Raises:
            ReplyTooLargeError: A returned table does not fit into a reply.
            NotATableError: A frame that ``to_table`` does not accept.
            UnsupportedValueError: A returned table has a value without a JSON form.
            S2SPError: The return annotation does not allow the value.
        """
        as_is = isinstance(value, CallToolResult | InputRequiredResult) or _holds_content(value)
        fit = value if as_is else jsonable(value)
        if not as_is and _is_frame(value):
            shown = plain_reply(_table(value), hint=_TABLE_HINT)
            if self.schema is None:
                return shown
            fit = (shown.structured_content or {})["result"]
        result = self._by_sdk(fit, type(value).__name__)
        if as_is or not isinstance(result, CallToolResult):
            return result
        if result.structured_content is not None:
            result.structured_content = jsonable(result.structured_content)
        if fit is not None and not isinstance(fit, str):
            text = _text(fit, result.structured_content, wrapped=self.metadata.wrap_output)
            result.content = [TextContent(type="text", text=text)]
        return result

    def _by_sdk(self, value: Any, kind: str) -> CallToolResult | InputRequiredResult:
        try:
            return self.metadata.convert_result(value)
        except ValidationError as exc:
            # pydantic's own message would show the value.
            raise S2SPError(
                f"The tool's function returned a {kind} that its return annotation does not allow."
            ) from exc


def _text(value: Any, structured: dict[str, Any] | None, *, wrapped: bool) -> str:
    if structured is not None:
        return json_values.dumps(structured["result"] if wrapped else structured)
    return json_values.dumps(jsonable(pydantic_core.to_jsonable_python(value, fallback=str, inf_nan_mode="strings")))


def _holds_content(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_content, value))
    return isinstance(value, ContentBlock | Image | Audio)


def _is_frame(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__") or form_of(type(value)) not in (None, Form.ROWS)


def _table(frame: Any) -> pa.Table:
    """Convert a returned frame to a table. Functions may return what they were given, so a ``_row_id`` is allowed."""
    form = form_of(type(frame))
    if form is Form.POLARS_LAZY:
        frame, form = frame.collect(), Form.POLARS_FRAME
    if form is Form.ARROW_READER:
        frame, form = frame.read_all(), Form.ARROW_TABLE
    names = frame.column_names if form is Form.ARROW_TABLE else getattr(frame, "columns", ())
    if form is None or wire.ROW_ID not in names:
        return to_table(frame)
    stand_in = max(map(str, names), key=len) + "_"  # longer than every name, so unused
    if form is Form.ARROW_TABLE:
        renamed = frame.rename_columns([stand_in if name == wire.ROW_ID else name for name in names])
    else:
        mapping = {wire.ROW_ID: stand_in}
        renamed = frame.rename(mapping) if form is Form.POLARS_FRAME else frame.rename(columns=mapping)
    table = to_table(renamed)
    return table.rename_columns([wire.ROW_ID if name == stand_in else name for name in table.column_names])


def _allow_non_finite(schema: Any) -> Any:
    """Allow the three texts wherever the schema has a float, so that strict clients accept them."""
    if isinstance(schema, list):
        return [_allow_non_finite(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _allow_non_finite(value) for key, value in schema.items()}
    if out.get("type") != "number":
        return out
    labels = {key: out.pop(key) for key in ("title", "description", "default") if key in out}
    return {**labels, "anyOf": [out, _NON_FINITE]}


def jsonable(value: Any) -> Any:
    """Replace values that JSON lacks by framewire's forms; models and unknown objects stay as they are."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate would break the reply
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else json_values.non_finite_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {_key(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, BaseModel | int):
        return value
    return _foreign(value)


def _key(key: Any) -> Any:
    plain = jsonable(key)
    return plain if isinstance(plain, str | int | float | bool) or plain is None else key


def _foreign(value: Any) -> Any:
    """Convert scalars and arrays of numpy, pandas and pyarrow, recognised by module name: none of them is imported."""
    module = type(value).__module__.partition(".")[0]
    if module == "numpy" and hasattr(value, "tolist"):
        return jsonable(_datetime64(value) if value.dtype.kind in "mM" else value.tolist())
    if module == "pyarrow" and hasattr(value, "as_py"):
        return jsonable(value.as_py())
    pandas = sys.modules.get("pandas")
    if pandas is not None and (value is pandas.NA or value is pandas.NaT):
        return None
    return value


def _datetime64(value: Any) -> Any:
    """Convert numpy's times by way of text: ``tolist`` gives bare integers for nanoseconds."""

    def null(item: Any) -> Any:
        return [null(i) for i in item] if isinstance(item, list) else None if item == "NaT" else item

    return null(value.astype(str).tolist())
