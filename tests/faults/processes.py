"""Processes that fault tests start: a data plane, and a stdio MCP server all of whose lines are read."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from tests.faults.forms import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]


def spawn(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000", **(env or {})},
    )


class Lines:
    """A stream's lines, read in a thread so that a wait for one is bounded and no pipe fills up."""

    def __init__(self, stream: IO[str]) -> None:
        self.all: list[str] = []
        self._new: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self.all.append(line)
            self._new.put(line)
        self._new.put(None)

    def next(self, seconds: float = PATIENCE_SECONDS) -> str | None:
        """The next line, or None after the last."""
        return self._new.get(timeout=seconds)

    def rest(self, seconds: float = PATIENCE_SECONDS) -> str:
        """Everything, once the stream has ended."""
        self._thread.join(seconds)
        assert not self._thread.is_alive()
        return "".join(self.all)


class Process:
    """One running process; killed on the way out if it still lives."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.popen = spawn(*arguments, env=env)
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self.stdin = self.popen.stdin
        self.out, self.err = Lines(self.popen.stdout), Lines(self.popen.stderr)
        try:
            self._begin()
        except BaseException:
            self.kill()  # its pipes would be warnings in later tests
            raise

    def _begin(self) -> None:
        """Wait until it is up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def kill(self) -> None:
        """kill -9, and wait for the end of it and its pipes."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(PATIENCE_SECONDS)
        self.out.rest()
        self.err.rest()
        for pipe in (self.stdin, self.popen.stdout, self.popen.stderr):
            try:
                assert pipe is not None
                pipe.close()
            except BrokenPipeError:
                pass

    def write(self, message: object) -> None:
        self.stdin.write(json.dumps(message) + "\n")
        self.stdin.flush()


class PlaneProcess(Process):
    """``plane_worker.py``; calling it sends one request and gives its answer."""

    def __init__(self, **env: str) -> None:
        super().__init__("-m", "tests.faults.plane_worker", env=env)

    def _begin(self) -> None:
        self.base_url: str = self._answer()["ready"]

    def _answer(self) -> Any:
        line = self.out.next()
        assert line is not None, self.err.rest()
        return json.loads(line)

    def __call__(self, do: str, **arguments: Any) -> Any:
        self.write({"do": do, **arguments})
        return self._answer()


class StdioServer(Process):
    """A stdio MCP server. Its whole output is checked on the way out: every line of stdout is JSON-RPC."""

    def __init__(self, script: Path | str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self._id = 0
        super().__init__(str(script), *arguments, env=env)

    def _begin(self) -> None:
        self.request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "faults", "version": "1"},
        )
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.check_output()

    def check_output(self) -> int:
        """Count stdout's lines, each of which must be a JSON-RPC message."""
        for line in self.out.all:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0", line
            assert "method" in message or "result" in message or "error" in message, line
        return len(self.out.all)

    def request(self, method: str, **params: Any) -> Any:
        self._id += 1
        self.write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            line = self.out.next()
            assert line is not None, self.err.rest()
            message = json.loads(line)
            if message.get("id") == self._id:
                return message.get("result") or message

    def tool(self, name: str, **arguments: Any) -> Any:
        """Call a tool; gives its result, an error as well."""
        return self.request("tools/call", name=name, arguments=arguments)

    def publish(self, **arguments: Any) -> str:
        """The resource_url of the tool ``numbers``."""
        url: str = self.tool("numbers", abstract_domains="_row_id", **arguments)["structuredContent"]["resource_url"]
        return url
