"""What a failure looks like to the model: ``is_error`` and a text that says what to do next."""

from __future__ import annotations

import logging
from typing import Final

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from framewire.errors import S2SPError

_log = logging.getLogger("framewire")

PASSED_ON: Final = (MCPError, ToolError, ResourceError)
"""Raised by an author who knows the SDK: it gives them their meaning, framewire does not."""

_MAX_CHARS: Final = 8_000
"""An error is read by a model: a page and a half, whatever a library put into its message."""


def error_result(text: str) -> CallToolResult:
    """A tool error with exactly this text (the SDK would put "Error executing tool ..." in front of an exception's)."""
    if len(text) > _MAX_CHARS:
        text = f"{text[:_MAX_CHARS]}... ({len(text)} characters in all)"
    # A lone surrogate, from the caller's own JSON, has no form on the wire and would break the reply itself.
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return CallToolResult(content=[TextContent(type="text", text=safe)], is_error=True)


def is_panic(exc: BaseException) -> bool:
    """Whether this is a Polars panic: a ``BaseException``, though the process is well."""
    return type(exc).__name__ == "PanicException"


def failure(exc: BaseException, tool: str) -> CallToolResult:
    """The tool error for an exception of the user's function or of framewire's own stages.

    The message alone reaches the model, the traceback the server's log. Exceptions that are no failure of the tool
    (cancellation, exit) and those in :data:`PASSED_ON` are raised again.
    """
    if isinstance(exc, S2SPError):
        _log.info("Tool %r refused: %s", tool, exc.code)
        return error_result(str(exc))
    if isinstance(exc, PASSED_ON) or not (isinstance(exc, Exception) or is_panic(exc)):
        raise exc
    _log.error("Tool %r raised an exception", tool, exc_info=exc)
    return error_result(describe(exc))


def describe(exc: BaseException) -> str:
    """An exception's own message; its class as well where the message alone says nothing."""
    text = str(exc).strip()
    if not text:
        return type(exc).__name__
    # str(KeyError("origin")) is "'origin'": a name without what is wrong with it.
    return f"{type(exc).__name__}: {text}" if isinstance(exc, KeyError) else text
