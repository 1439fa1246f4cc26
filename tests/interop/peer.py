"""Speaks to the process of ``mcp_sd_peer.py``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Self

SCRIPT = Path(__file__).parent / "mcp_sd_peer.py"


class PeerError(Exception):
    """What the reference raised, by its class name."""


class Peer:
    """The process of ``mcp_sd_peer.py``."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, "-u", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._answers = self.process.stdin, self.process.stdout

    def __enter__(self) -> Self:
        self.endpoint = self._answer()["ready"]
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self.process.wait(120)
        self._answers.close()

    def __call__(self, operation: str, **arguments: Any) -> Any:
        self._requests.write(json.dumps({"operation": operation, **arguments}) + "\n")
        self._requests.flush()
        answer = self._answer()
        if "error" in answer:
            raise PeerError(f"{answer['error']}: {answer['text']}")
        return answer["result"]

    def _answer(self) -> Any:
        line = self._answers.readline()
        assert line, "the reference's process ended"
        return json.loads(line)

    def publish(self, rows: list[dict[str, Any]], domains: str = "city") -> str:
        """A fresh presigned URL of a real mcp-sd server."""
        url: str = self("publish", rows=rows, abstract_domains=domains)["resource_url"]
        return url
