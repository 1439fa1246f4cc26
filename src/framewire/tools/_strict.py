"""A record of framewire's tools on a server, and the MCP extension that refuses arguments they do not have."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.types import CallToolRequestParams

from framewire.errors import ArgumentError
from framewire.tools._errors import error_result


@dataclass(frozen=True)
class Registered:
    """One of framewire's tools.

    Attributes:
        arguments: Names of the arguments that the tool accepts.
        publishes: Whether it is a resource tool.
        output_schema: JSON schema of its structured content, if it declares one.
    """

    arguments: frozenset[str]
    publishes: bool
    output_schema: dict[str, Any] | None = None


class StrictArguments(Extension):
    """Refuses arguments that a framewire tool does not have.

    The SDK ignores them: a misspelt ``abstract_domain`` would show the model every column without an error. Other
    tools of the same server keep the SDK's behaviour.
    """

    identifier = "dev.framewire/s2sp"

    def __init__(self) -> None:
        self.tools_by_name: dict[str, Registered] = {}

    def settings(self) -> dict[str, Any]:
        """Return the entry that clients of the newer protocol see under ``capabilities.extensions``."""
        return {"version": "1"}

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Check the raw arguments before the SDK drops unknown ones."""
        tool = self.tools_by_name.get(params.name)
        if tool is not None:
            for name in params.arguments or {}:
                if name not in tool.arguments:
                    return error_result(str(unknown_argument(name, tool.arguments)))
        return await call_next(ctx)


def unknown_argument(name: str, known: frozenset[str]) -> ArgumentError:
    """Build the error for an argument that does not exist, with the nearest one that does."""
    near = get_close_matches(name, sorted(known), n=1)
    did = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(sorted(known)) or "(none)"
    return ArgumentError(f"There is no parameter {name[:200]!r}.{did}", hint=f"Nothing was done. Parameters: {listed}.")
