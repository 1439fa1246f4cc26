"""openai-agents: a connected MCP server object for each server."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from exchange import SERVERS, exchange


async def main() -> None:
    async with AsyncExitStack() as stack:
        servers = {}
        for name, server in SERVERS.items():
            kind = MCPServerStreamableHttp if "url" in server else MCPServerStdio
            made = kind(server, client_session_timeout_seconds=60)  # type: ignore[arg-type]
            servers[name] = await stack.enter_async_context(made)

        async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
            return await servers[name].call_tool(tool, arguments)

        await exchange(call)


asyncio.run(main())
