"""pydantic-ai: a toolset for each server, open for the whole exchange."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from exchange import SERVERS, exchange
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    async with AsyncExitStack() as stack:
        toolsets = {}
        for name, server in SERVERS.items():
            source = server["url"] if "url" in server else StdioTransport(**server)
            toolsets[name] = await stack.enter_async_context(MCPToolset(source))

        async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
            return await toolsets[name].direct_call_tool(tool, arguments)

        await exchange(call)


asyncio.run(main())
