"""Tokens and hidden values, sent down every path that fails: none is in a log line, a message, a repr, a trace or a count."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import polars as pl
import pytest

import framewire
from framewire.arrow import write
from framewire.client import PeerPolicy, fetch, fetch_async
from framewire.direct_channel import DirectChannel
from framewire.errors import S2SPError
from framewire.handle import Handle
from framewire.host.registry import entries
from framewire.plane import DataPlane
from framewire.serve import _guard
from framewire.serve._response import Response
from framewire.settings import Settings
from tests.faults.forms import PATIENCE_SECONDS, twice
from tests.faults.processes import ROOT, StdioServer
from tests.faults.proxy import DroppingProxy

SERVER = ROOT / "tests/faults/numbers_server.py"
CANARY = "CANARY-4711-IN-A-HIDDEN-CELL"
TOKEN = re.compile(r"fw1[a-z2-7]{8}")
"""The beginning of any token: half of one in a log would be a leak too."""
HIDDEN = re.compile(r"CANARY-\d{4}")


@contextmanager
def _everything_logged() -> Iterator[io.StringIO]:
    """What every logger says, at DEBUG, with the tracebacks."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s %(args)s"))
    root = logging.getLogger()
    names = ["", "framewire", "uvicorn", "uvicorn.error", "uvicorn.access", "httpx", "httpcore", "asyncio", "mcp"]
    before = {name: logging.getLogger(name).level for name in names}
    root.addHandler(handler)
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield said
    finally:
        root.removeHandler(handler)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _text_of(exc: BaseException) -> str:
    parts = [str(exc), repr(exc), repr(exc.args), "".join(traceback.format_exception(exc))]
    if isinstance(exc, S2SPError):
        parts += [exc.message, exc.hint, repr(exc.details), json.dumps(exc.to_wire())]
    return "\n".join(parts)


def _raw(url: str, request: bytes) -> bytes:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while data := sock.recv(65536):
            answer += data
        return answer


class _Failures:
    """Every way that a fetch, a publish or a request can fail, as functions without arguments."""

    def __init__(self, plane: DataPlane, proxy: DroppingProxy, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plane, self.proxy, self.monkeypatch = plane, proxy, monkeypatch
        self.rows = pl.DataFrame({"k": range(5000), "hidden": [CANARY] * 5000})
        self.handle = plane.publish(self.rows, tool="rows")
        self.url = self.handle.resource_url
        self.path = urlsplit(self.url).path

    def all(self) -> list[Callable[[], Any]]:
        url, gone = self.url, self.plane.publish(self.rows)
        self.plane.revoke(gone)
        expired = self.plane.publish(self.rows, ttl_seconds=0.001)
        limited = self.plane.publish(self.rows, max_uses=1)
        allowed = PeerPolicy(allow=[f"http://127.0.0.1:{self.proxy.port}", "http://127.0.0.1:1", "http://127.0.0.1:*"])
        through = url.replace(f":{urlsplit(url).port}", f":{self.proxy.port}")
        host = b"Host: 127.0.0.1\r\n\r\n"
        path = self.path.encode()

        def dropped() -> Any:
            self.proxy.arm(20, reset=True)
            return fetch(through, policy=allowed, deadline_seconds=2)

        def fails(name: str, module: Any, error: BaseException) -> Callable[[], Any]:
            def run() -> Any:
                def broken(*args: Any, **kwargs: Any) -> Any:
                    raise error

                with self.monkeypatch.context() as patch:
                    patch.setattr(module, name, broken)
                    return fetch(url, ["0-9"], deadline_seconds=5)

            return run

        return [
            lambda: fetch(url, [99_999]),
            lambda: fetch(url, ["x"]),
            lambda: fetch(url, columns=["hiddden"]),
            lambda: fetch(url, where="hidden = 1"),
            lambda: fetch(gone.resource_url),
            lambda: fetch(expired.resource_url),
            lambda: (fetch(limited.resource_url), fetch(limited.resource_url)),
            lambda: fetch(url[:-1] + ("a" if url[-1] != "a" else "b")),
            lambda: fetch(url + "?x=1"),
            lambda: fetch(url.replace("127.0.0.1", "10.1.2.3")),
            lambda: fetch(url.replace("127.0.0.1", "nowhere.invalid")),
            lambda: fetch(url.replace(str(urlsplit(url).port), "1"), policy=allowed),
            lambda: fetch(url, settings=Settings.from_env(max_rows=10)),
            lambda: fetch(url, settings=Settings.from_env(max_body_bytes=100)),
            lambda: fetch(url, deadline_seconds=1e-9),
            lambda: asyncio.run(fetch_async(url, ["bad"])),
            lambda: fetch(
                url, transport=httpx.MockTransport(lambda request: httpx.Response(500, text=str(request.url)))
            ),
            lambda: fetch(url, transport=httpx.MockTransport(_raising)),
            lambda: asyncio.run(fetch_async(url, transport=httpx.MockTransport(_raising))),
            dropped,
            fails("slices", Response, RuntimeError("in the middle")),
            fails("encode", write, ValueError("no encoding")),
            lambda: framewire.resolve("not json", url),
            lambda: framewire.resolve('[{"_row_id": 77777}]', url),
            lambda: framewire.resolve('[{"_row_id": 1}]', url, column_mapping='{"hidden": "k"}'),
            lambda: framewire.resolve(resource_url=f" {url}"),
            lambda: asyncio.run(DirectChannel.fetch_data(gone.resource_url, [1])),
            lambda: self.plane.publish([{"hidden": CANARY}, {"hidden": 7}]),
            lambda: self.plane.publish([{"hidden": CANARY}, {"hidden": object()}]),
            lambda: self.plane.publish(pl.DataFrame({"_row_id": [CANARY]})),
            lambda: self.plane.publish([{"hidden": f"{CANARY}\ud800"}]),
            lambda: self.plane.revoke(gone),
            lambda: Handle.from_dict({**self.handle.to_dict(), "nbytes": url}),
            lambda: Settings.from_env({"FRAMEWIRE_ALLOW_PEERS": url}),
            lambda: PeerPolicy(allow=[url]),
            lambda: _raw(url, b"GET " + path + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
            lambda: _raw(url, b"BREW " + path + b" HTTP/1.1\r\n" + host),
            lambda: _raw(url, b"GET " + path + b"?row_ids=%zz HTTP/1.1\r\n" + host),
            lambda: _raw(url, b"GET " + path + b" HTTP/9.9\r\n" + host),
            lambda: _raw(url, b"\x00" + path + b"\r\n\r\n"),
            lambda: _raw(url, b"POST " + path + b" HTTP/1.1\r\nContent-Length: 3\r\n" + host + b"{{{"),
            lambda: _raw(url, b"POST " + path + b" HTTP/1.1\r\nContent-Length: 99\r\n" + host + b"{"),
            lambda: _raw(
                url,
                b"GET "
                + path
                + b" HTTP/1.1\r\nRange: bytes=999999999-\r\nAccept: application/vnd.apache.arrow.stream\r\n"
                + host,
            ),
            lambda: _raw(url, b"DELETE " + path + b"x HTTP/1.1\r\n" + host),
        ]


def _raising(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError(f"while reading {request.url}", request=request)


@twice
def test_no_failure_in_the_process_tells_a_secret(
    form: str,
    runtime: Path,
    monkeypatch: pytest.MonkeyPatch,
    figure: Callable[[str], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FRAMEWIRE_SAME_HOST", "off")
    monkeypatch.setattr(_guard, "REQUEST_SECONDS", 1.0)  # half a request is given up sooner
    monkeypatch.setattr(_guard, "_TICK_SECONDS", 0.1)
    texts: list[str] = []
    errors = 0
    with _everything_logged() as said, DataPlane() as plane:
        with DroppingProxy(int(plane.base_url.rpartition(":")[2])) as proxy:
            failures = _Failures(plane, proxy, monkeypatch)
            paths = failures.all()
            for number, path in enumerate(paths):
                try:
                    answer = path()
                except Exception as exc:
                    errors += 1
                    texts.append(f"{number}: {_text_of(exc)}")
                else:
                    if isinstance(answer, bytes):
                        texts.append(f"{number}: {answer.decode('latin-1')}")
            policy = PeerPolicy.from_settings(Settings.from_env())
            shown = (
                plane,
                plane.stats(),
                failures.handle,
                plane.settings,
                policy,
                policy.check(failures.url),
                *entries(folder=str(runtime)),
            )
            texts += [f"{value!r} {value}" for value in shown]
        texts.append(said.getvalue())
    printed = capfd.readouterr()
    texts += [printed.out, printed.err]
    leaks = [text for text in texts if TOKEN.search(text) or HIDDEN.search(text)]
    assert leaks == []
    assert errors >= 30
    assert "A data-plane request failed" in said.getvalue()  # the loudest path was taken
    figure(
        f"secrets in one process: {len(paths)} ways to fail, {errors} errors, {len(said.getvalue().splitlines())} log lines at "
        f"DEBUG: 0 tokens, 0 hidden values"
    )


@twice
def test_no_failure_of_a_real_server_tells_a_secret(form: str, runtime: Path, figure: Callable[[str], None]) -> None:
    """At DEBUG, with uvicorn's and the SDK's own loggers open. Replies carry the handle, and nothing else does."""
    with StdioServer(SERVER, "debug") as server:
        reply = server.tool("secrets", abstract_domains="k")
        url = reply["structuredContent"]["resource_url"]
        results = [
            server.tool("secrets", how="mixed", abstract_domains="k"),
            server.tool("secrets", how="object", abstract_domains="k"),
            server.tool("secrets", abstract_domains="hiddden"),
            server.tool("secrets", abstract_domains="k", mode="neither"),
            server.tool("clumsy", resource_url=url),
            server.tool("total", resource_url=url),
            server.tool("total", resource_url=url, column="hidden"),
            server.tool("total", resource_url=url[:-1]),
            server.tool("total", resource_url=url.replace("127.0.0.1", "10.0.0.1")),
            server.tool("total", resource_url=url, row_ids="0-9999"),
            server.tool("total", resource_url=url, abstract_data="nonsense"),
            server.tool("total", resource_url=url, unknown_argument=1),
            server.tool("total", resource_url=[url]),
        ]
        parts = urlsplit(url)
        for request in (
            b"GET " + parts.path.encode() + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"GET " + parts.path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \x00\r\n\r\n",
            b"GET " + parts.path.encode() + b"?row_ids=a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        ):
            _raw(url, request)
        server.tool("fail_transfers", after=0)
        with pytest.raises(S2SPError):
            fetch(url, ["0-9"])
        server.popen.send_signal(signal.SIGTERM)
        server.popen.wait(PATIENCE_SECONDS)
        log = server.err.rest()
        replies = [line for line in server.out.all if TOKEN.search(line)]
        lines = server.check_output()
    failed = [json.dumps(result) for result in results if result.get("isError")]
    assert len(failed) >= 11
    assert [text for text in failed if TOKEN.search(text) or HIDDEN.search(text)] == []
    assert [line for line in log.splitlines() if TOKEN.search(line) or HIDDEN.search(line)] == []
    assert not HIDDEN.search(json.dumps(reply))
    assert len(replies) == 1  # the one that handed the handle out
    assert "Exception in ASGI application" in log
    figure(
        f"secrets of a stdio server: {len(log.splitlines())} stderr lines at DEBUG, {lines} lines on stdout, {len(failed)} tool "
        "errors: "
        "0 tokens but in the reply that hands out the handle, 0 hidden values"
    )
