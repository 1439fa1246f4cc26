"""Calls a tool through the SDK's in-memory client, in both protocol modes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult

from framewire import S2SPServer

Call = Callable[..., CallToolResult]


@pytest.fixture(params=["auto", "legacy"])
def call(request: pytest.FixtureRequest) -> Call:
    """``call(server, "tool", argument=...)`` -> the result, as a client of either protocol receives it."""

    async def once(server: S2SPServer, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        async with Client(server, mode=request.param) as client:
            await client.list_tools()  # the client checks structured content against the listed schema
            return await client.call_tool(tool, arguments)

    return lambda server, tool, **arguments: asyncio.run(once(server, tool, arguments))


@pytest.fixture
def server() -> S2SPServer:
    return S2SPServer("test")
