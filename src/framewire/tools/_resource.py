"""Resource tools: a function that returns a table -> a tool that shows the columns asked for and keeps the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
from mcp.types import CallToolResult, InputRequiredResult

from framewire.errors import NotATableError
from framewire.handle import Handle
from framewire.host.threads import CONVERTING
from framewire.table import to_table
from framewire.tools._arguments import RESOURCE_PARAMETERS
from framewire.tools._errors import failure
from framewire.tools._reply import Request, reply
from framewire.tools._signature import Function, build_wrapper


def resource_tool(
    fn: Callable[..., Any], *, name: str, abstract_limit: int, publish: Callable[[pa.Table], Handle]
) -> Callable[..., Awaitable[Any]]:
    """Wrap ``fn`` for ``MCPServer.add_tool``: its own parameters, ``abstract_domains`` and ``mode``.

    Args:
        fn: Sync or async; returns anything that ``to_table`` takes, whatever its annotations say.
        name: The tool's name.
        abstract_limit: Rows that an abstract shows, at most.
        publish: Blocking; stores a normalised table and returns its handle.

    Raises:
        SignatureError: ``fn`` cannot become a tool.
    """
    function = Function.read(fn)

    async def run(arguments: dict[str, Any]) -> Any:
        domains, mode = arguments.pop("abstract_domains", ""), arguments.pop("mode", "async")
        try:
            request = Request.read(domains, mode, abstract_limit)
            value = await function(arguments)
            if isinstance(value, InputRequiredResult) or (isinstance(value, CallToolResult) and value.is_error):
                return value
            if isinstance(value, CallToolResult):
                raise _not_a_table(name)
            return await CONVERTING.run(_answer, value, request, publish)
        except BaseException as exc:
            return failure(exc, name)

    return build_wrapper(function, RESOURCE_PARAMETERS, run)


def _answer(value: Any, request: Request, publish: Callable[[pa.Table], Handle]) -> CallToolResult:
    return reply(to_table(value), request, publish)


def _not_a_table(name: str) -> NotATableError:
    return NotATableError(
        f"The function of {name!r} returned a CallToolResult.",
        hint="It would show the model what nobody asked for: return the table (only is_error=True results pass).",
    )
