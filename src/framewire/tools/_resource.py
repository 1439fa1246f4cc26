"""Resource tools: a function that returns a table -> a tool that shows the columns asked for and keeps the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.types import CallToolResult, InputRequiredResult

from framewire.errors import NotATableError
from framewire.host.threads import CONVERTING
from framewire.plane import DataPlane
from framewire.table import to_table
from framewire.tools._arguments import RESOURCE_PARAMETERS
from framewire.tools._errors import failure
from framewire.tools._reply import Request, reply
from framewire.tools._signature import Function, build_wrapper


def resource_tool(
    fn: Callable[..., Any], *, name: str, abstract_limit: int, nan_is_null: bool, plane: Callable[[], DataPlane]
) -> Callable[..., Awaitable[Any]]:
    """Wrap ``fn`` for ``MCPServer.add_tool``: its own parameters, ``abstract_domains`` and ``mode``.

    Args:
        fn: Sync or async; returns anything that ``to_table`` takes, whatever its annotations say.
        name: The tool's name.
        abstract_limit: Rows that an abstract shows, at most.
        nan_is_null: As in ``to_table``.
        plane: Blocking; returns the started plane that stores the body of an async reply.

    Raises:
        SignatureError: ``fn`` cannot become a tool.
    """
    function = Function.read(fn)

    def answer(value: Any, request: Request) -> CallToolResult:
        return reply(
            to_table(value, nan_is_null=nan_is_null), request, lambda prepared: plane().publish(prepared, tool=name)
        )

    async def run(arguments: dict[str, Any]) -> Any:
        domains, mode = arguments.pop("abstract_domains", ""), arguments.pop("mode", "async")
        try:
            request = Request.read(domains, mode, abstract_limit)
            value = await function(arguments)
            if isinstance(value, InputRequiredResult) or (isinstance(value, CallToolResult) and value.is_error):
                return value
            if isinstance(value, CallToolResult):
                raise _not_a_table(name)
            return await CONVERTING.run(answer, value, request)
        except BaseException as exc:
            return failure(exc, name)

    return build_wrapper(function, RESOURCE_PARAMETERS, run)


def _not_a_table(name: str) -> NotATableError:
    return NotATableError(
        f"The function of {name!r} returned a CallToolResult.",
        hint="Its content would reach the model unasked: return the table (only results with is_error=True pass).",
    )
