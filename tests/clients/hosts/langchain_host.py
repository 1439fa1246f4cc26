"""langchain-mcp-adapters: tools of one open session for each server. ``get_tools()`` alone opens a session for each call."""

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

from exchange import SERVERS, exchange
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main(*, keep_sessions: bool) -> None:
    connections = {
        name: {**server, "transport": "streamable_http" if "url" in server else "stdio"}
        for name, server in SERVERS.items()
    }
    client = MultiServerMCPClient(connections)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        tools = {}
        for name in SERVERS:
            if keep_sessions:
                found = await load_mcp_tools(await stack.enter_async_context(client.session(name)))
            else:
                found = await client.get_tools(server_name=name)
            tools.update({(name, tool.name): tool for tool in found})

        async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
            return await tools[name, tool].ainvoke(arguments)

        await exchange(call)


asyncio.run(main(keep_sessions="--session-per-call" not in sys.argv))
