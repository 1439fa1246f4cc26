"""langchain-mcp-adapters: tools of one open session for each server.

``get_tools()`` opens a session for each call: over stdio the server, and with it the body, has ended when the consumer is called.
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from exchange import SERVERS, exchange
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main() -> None:
    connections = {
        name: {**server, "transport": "streamable_http" if "url" in server else "stdio"}
        for name, server in SERVERS.items()
    }
    client = MultiServerMCPClient(connections)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        tools = {}
        for name in SERVERS:
            found = await load_mcp_tools(await stack.enter_async_context(client.session(name)))
            tools.update({(name, tool.name): tool for tool in found})

        async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
            return await tools[name, tool].ainvoke(arguments)

        await exchange(call)


asyncio.run(main())
