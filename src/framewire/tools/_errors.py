"""Failures as the model sees them: ``is_error`` and a text that says what to do next."""

from __future__ import annotations

import logging
from typing import Final

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from framewire.errors import S2SPError

_log = logging.getLogger("framewire")

PASSED_ON: Final = (MCPError, ToolError, ResourceError)
"""The SDK's own exceptions, which an author may raise and the SDK turns into responses."""

_MAX_CHARS: Final = 8_000
"""Limit of an error's text, which a model reads: a page and a half, however long a library's message is."""


def error_result(text: str) -> CallToolResult:
    """Build a tool error with exactly this text (the SDK prefixes an exception's with "Error executing tool ...")."""
    if len(text) > _MAX_CHARS:
        text = f"{text[:_MAX_CHARS]}... ({len(text)} characters in all)"
    # A lone surrogate, from the caller's own JSON, is not valid UTF-8 and would break the reply itself.
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return CallToolResult(content=[TextContent(type="text", text=safe)], is_error=True)


def is_panic(exc: BaseException) -> bool:
    """Whether this is a Polars panic, which is a ``BaseException`` although the process can go on."""
    return type(exc).__name__ == "PanicException"


def failure(exc: BaseException, tool: str) -> CallToolResult:
    """Build the tool error for an exception of the user's function or of framewire's own stages.

    The model gets the message alone, the server's log the traceback. Exceptions that are not a failure of the tool
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
    """Return an exception's message, with its class where the message alone says nothing."""
    text = str(exc).strip()
    if not text:
        return type(exc).__name__
    # str(KeyError("origin")) is "'origin'", which does not say what is wrong.
    return f"{type(exc).__name__}: {text}" if isinstance(exc, KeyError) else text
