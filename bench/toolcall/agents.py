"""The agents of both: they call the resource tool, then the consumer tool with what the first returned."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

Call = Callable[[str, dict[str, Any]], Awaitable[str]]
"""Calls a tool with arguments; gives the text of its result."""


def framewire(state: dict[str, Any], rows: int, repeats: int, warmup: int) -> dict[str, Any]:
    """framewire's servers over stdio, with its own SDK's client. The reply's abstract stays out of the second call: the
    consumer takes every row.
    """
    from mcp import Client, StdioServerParameters

    async def connect(stack: AsyncExitStack) -> Call:
        params = StdioServerParameters(**_command("framewire_server", rows))
        client = await stack.enter_async_context(Client(params, read_timeout_seconds=200))
        return lambda tool, arguments: _text(client.call_tool(tool, arguments))

    async def once(producer: Call, consumer: Call) -> str:
        reply = json.loads(await producer("measurements", {"abstract_domains": "id"}))
        return await consumer("summary", {"resource_url": reply["resource_url"]})

    return asyncio.run(_measure(connect, once, rows, repeats, warmup))


def mcp_sd(state: dict[str, Any], rows: int, repeats: int, warmup: int) -> dict[str, Any]:
    """The reference's servers over stdio, with the client of the SDK that it needs. Its consumer takes the rows whose
    abstract it is given, so that the abstract goes both ways.
    """
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def connect(stack: AsyncExitStack) -> Call:
        params = StdioServerParameters(**_command("mcp_sd_server", rows))
        streams = await stack.enter_async_context(stdio_client(params))
        session = await stack.enter_async_context(ClientSession(*streams))
        await session.initialize()
        return lambda tool, arguments: _text(session.call_tool(tool, arguments))

    async def once(producer: Call, consumer: Call) -> str:
        reply = json.loads(await producer("measurements", {"abstract_domains": "id"}))
        abstract = json.dumps(reply["abstract"])
        return await consumer("summary", {"abstract_data": abstract, "resource_url": reply["resource_url"]})

    return asyncio.run(_measure(connect, once, rows, repeats, warmup))


def _command(script: str, rows: int) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", f"bench.toolcall.{script}", str(rows)], "env": dict(os.environ)}


async def _text(result: Awaitable[Any]) -> str:
    content = (await result).content
    return str(content[0].text)


async def _measure(
    connect: Callable[[AsyncExitStack], Awaitable[Call]],
    once: Callable[[Call, Call], Awaitable[str]],
    rows: int,
    repeats: int,
    warmup: int,
) -> dict[str, Any]:
    """Seconds from the first call to the reply of the second, and the largest peak of a server."""
    expected = f"{rows} {rows * (rows - 1) // 2}"
    seconds = []
    async with AsyncExitStack() as stack:
        producer, consumer = await connect(stack), await connect(stack)
        for _ in range(repeats + warmup):
            start = time.perf_counter()
            answer = await once(producer, consumer)
            seconds.append(time.perf_counter() - start)
            if answer != expected:
                raise ValueError(f"the consumer answered {answer[:300]!r} where {expected!r} was due")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {"seconds": seconds[warmup:], "server_peak": peak}
