"""The parent's end of a child process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from bench.contenders import ROOT, environment
from bench.memory import peak_rss_bytes


class ChildError(Exception):
    """A child failed; the text is its traceback."""


class Child:
    """A fresh Python that runs ``bench.worker``.

    Args:
        python: Interpreter.
        quiet: Drop its stderr, where others' servers log what they please. Failures come as answers anyway.
        timeout_seconds: For each call; a child that takes longer is killed.
        prefix: Command that runs it and becomes it, in another network namespace for instance.
        variables: Its environment variables, in place of those of framewire's own environment.
    """

    def __init__(
        self,
        python: str,
        *,
        quiet: bool = False,
        timeout_seconds: float = 240.0,
        prefix: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._process = subprocess.Popen(
            [*prefix, python, "-m", "bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            cwd=ROOT,
            env=environment() if variables is None else variables,
        )
        self._waiting = b""

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def call(self, function: str, **arguments: Any) -> Any:
        """Call ``module:name`` with ``arguments`` there and return what it returned, as JSON brings it."""
        self.send(function, **arguments)
        return self.receive()

    def send(self, function: str, **arguments: Any) -> None:
        """Start a call; :meth:`receive` waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": function, "with": arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """Wait for the call that was started.

        Raises:
            ChildError: It failed, took too long, or the process ended.
        """
        reply = json.loads(self._line())
        if "error" in reply:
            raise ChildError(reply["error"])
        return reply["result"]

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        deadline = time.monotonic() + self._timeout_seconds
        while b"\n" not in self._waiting:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                self._process.kill()
                raise ChildError(f"no answer within {self._timeout_seconds:g} s")
            piece = os.read(fd, 1 << 20)
            if not piece:
                raise ChildError(f"the process ended with status {self._process.wait()}")
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\n")
        return line

    def peak_rss_bytes(self) -> int:
        """Most memory that it held so far."""
        return peak_rss_bytes(self.pid)

    def close(self) -> None:
        """End it, and wait until its memory is free for the next one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
