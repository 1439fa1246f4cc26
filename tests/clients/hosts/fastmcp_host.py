"""fastmcp's client over one configuration of several servers: tools are prefixed with their server's name."""

import asyncio
from typing import Any

from exchange import SERVERS, exchange
from fastmcp import Client


async def main() -> None:
    async with Client({"mcpServers": SERVERS}) as client:

        async def call(name: str, tool: str, arguments: dict[str, Any]) -> Any:
            return await client.call_tool(f"{name}_{tool}", arguments)

        await exchange(call)


asyncio.run(main())
