"""What every host does here, whatever its library: ask two resource tools, hand each URL to the consumer. Standard library only.

A host script is given the servers as JSON (``{"stations": {"command": ..., "args": [...]} | {"url": ...}, ...}``) and prints
what the consumer answered for each resource server.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

RESOURCES = ("stations", "readings")
SERVERS: dict[str, dict[str, Any]] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}


async def exchange(call: Callable[[str, str, dict[str, Any]], Awaitable[Any]]) -> None:
    """Carry out the exchange; ``call`` takes a server, a tool and arguments, and gives a mapping, JSON text or content blocks."""
    answers = {}
    for name in RESOURCES:
        reply = as_mapping(await call(name, name, {"abstract_domains": "n"}))
        arguments = {"abstract_data": json.dumps(reply["abstract"][1:3]), "resource_url": reply["resource_url"]}
        answers[name] = as_mapping(await call("analysis", "summarise", arguments))
    print(json.dumps(answers))


def as_mapping(result: Any) -> dict[str, Any]:
    """The reply in a tool's result, in whichever shape the library gives it."""
    for attribute in ("structured_content", "structuredContent", "data"):
        if isinstance(found := getattr(result, attribute, None), dict):
            return found
    if isinstance(result, dict):
        found = result.get("structuredContent")
        return found if isinstance(found, dict) else result
    if isinstance(result, str):
        return as_mapping(json.loads(result))
    blocks = getattr(result, "content", result)
    block = blocks[0]
    text = block["text"] if isinstance(block, dict) else block.text
    try:
        return as_mapping(json.loads(text))
    except ValueError:
        sys.exit(f"The tool answered: {text}")
