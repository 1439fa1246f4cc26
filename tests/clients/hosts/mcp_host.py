"""The SDK's own client, 1.x: one session for each server."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from exchange import SERVERS, exchange
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    async with AsyncExitStack() as stack:
        sessions = {}
        for name, server in SERVERS.items():
            if "url" in server:
                streams = await stack.enter_async_context(streamablehttp_client(server["url"]))
            else:
                streams = await stack.enter_async_context(stdio_client(StdioServerParameters(**server)))
            sessions[name] = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
            await sessions[name].initialize()

        async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
            return await sessions[name].call_tool(tool, arguments)

        await exchange(call)


asyncio.run(main())
