"""The real route: tools of both implementations, each server in its own process, called by an MCP client over stdio."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

pytestmark = [pytest.mark.interop, pytest.mark.anyio]

HERE = Path(__file__).parent
CITIES = ["Zürich", "東京", "Saint-Étienne", "new\nline", "Ålesund"]


def server(python: str, script: str) -> Client:
    # The SDK passes a few variables only. PYTHONPATH is how framewire may have been found here. The reference registers
    # nowhere and takes a random port, so a consumer must be told about loopback.
    env = {name: os.environ[name] for name in ("PYTHONPATH", "PATH") if name in os.environ}
    env["FRAMEWIRE_ALLOW_PEERS"] = "http://127.0.0.1:*"
    return Client(StdioServerParameters(command=python, args=[str(HERE / script)], env=env))


@pytest.fixture(scope="module")
async def servers(mcp_sd_python: str, anyio_backend: str) -> AsyncIterator[tuple[Client, Client]]:
    """A server of framewire's and one of the reference, each in its own process, for all tests of this module."""
    async with (
        server(sys.executable, "framewire_server.py") as ours,
        server(mcp_sd_python, "mcp_sd_server.py") as theirs,
    ):
        yield ours, theirs


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)  # type: ignore[union-attr]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text


async def test_a_reference_consumer_reads_from_a_framewire_resource(servers: tuple[Client, Client]) -> None:
    ours, theirs = servers
    reply = await call(ours, "cities", abstract_domains="city,note")
    assert [row["city"] for row in reply["abstract"]] == CITIES
    chosen = [reply["abstract"][3], reply["abstract"][1], reply["abstract"][2]]
    arguments = {"abstract_data": json.dumps(chosen), "resource_url": reply["resource_url"]}
    rows = await call(theirs, "echo", **arguments)
    assert rows == [
        {
            "_row_id": n,
            "city": CITIES[n],
            "people": str(2**60 + n),
            "day": f"2013-01-0{n + 1}",
            "amount": f"{n + 1}.25",
            "ratio": "NaN" if n == 2 else n / 3,
            "note": None if n % 2 else "é",
        }
        for n in (3, 1, 2)
    ]
    assert await call(theirs, "echo", **arguments) == rows
    unknown = {**arguments, "abstract_data": '[{"_row_id": 50}]'}
    assert "422" in await refused(theirs, "echo", **unknown)


async def test_a_reference_consumer_takes_a_framewire_body_inline(servers: tuple[Client, Client]) -> None:
    ours, theirs = servers
    reply = await call(ours, "cities", abstract_domains="city", mode="sync")
    body = json.dumps(reply["body"])
    rows = await call(theirs, "echo", abstract_data=json.dumps(reply["abstract"][:2]), body_data=body)
    assert [row["city"] for row in rows] == CITIES[:2]
    assert [row["people"] for row in rows] == [str(2**60), str(2**60 + 1)]


async def test_a_framewire_consumer_reads_from_a_reference_resource(servers: tuple[Client, Client]) -> None:
    ours, theirs = servers
    reply = await call(theirs, "cities", abstract_domains="city,note")
    chosen = [{**reply["abstract"][n], "mine": n} for n in (4, 0)]
    url = reply["resource_url"]
    rows = await call(ours, "echo", abstract_data=json.dumps(chosen), resource_url=url)
    assert rows == [
        {
            "_row_id": n,
            "city": CITIES[n],
            "people": 2**40 + n,
            "places": [{"n": n, "tags": ["a"] * n}],
            "note": "é",
            "mine": n,
        }
        for n in (4, 0)
    ]
    text = await refused(ours, "echo", abstract_data=json.dumps(chosen), resource_url=url)
    assert "tool again" in text
    assert url.rpartition("/")[2] not in text


async def test_a_row_that_the_reference_would_pass_over_is_an_error(servers: tuple[Client, Client]) -> None:
    ours, theirs = servers
    reply = await call(theirs, "cities", abstract_domains="city")
    text = await refused(ours, "echo", abstract_data='[{"_row_id": 9}]', resource_url=reply["resource_url"])
    assert "Row 9" in text
