"""How servers end, start beside each other, and refuse to be in two processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from framewire.client import fetch
from framewire.errors import LifecycleError, SettingError, TransferFailedError
from framewire.plane import DataPlane
from framewire.serve._response import Response
from framewire.settings import Settings
from tests.faults.forms import PATIENCE_SECONDS, twice, until
from tests.faults.plane_worker import table
from tests.faults.processes import ROOT, Process, StdioServer

SERVER = ROOT / "tests/faults/numbers_server.py"
LARGE = 2_000_000
"""Rows: 48 MB, far above what sockets hold."""
DRAINS = {"FRAMEWIRE_DRAIN_SECONDS": str(PATIENCE_SECONDS)}
"""For servers whose transfers are read to their end: how fast that goes is not the subject."""
ENDS_ITSELF = {"NUMBERS_LAST_SECONDS": str(PATIENCE_SECONDS)}
"""For servers that have to end in order: they are not ended when that takes longer than a moment."""


def _stalled(url: str, window: int = 4096) -> socket.socket:
    """A reader that has the head and then stops."""
    parts = urlsplit(url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    sock.settimeout(PATIENCE_SECONDS)
    sock.connect((parts.hostname, parts.port))
    accept = "application/vnd.apache.arrow.stream"
    sock.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n".encode())
    assert sock.recv(12) == b"HTTP/1.1 200"
    return sock


def _received(sock: socket.socket) -> tuple[int, int]:
    """Content-Length, and how many body bytes came before the end of the connection."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := sock.recv(1 << 20):
            data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head.lower())
    assert found is not None
    return int(found[1]), len(body)


# --- the end of a stdio server ------------------------------------------------------------------------------------------


@twice
@pytest.mark.parametrize("how", ["end of stdin", "SIGTERM", "SIGINT"])
def test_a_stalled_reader_does_not_hold_up_the_end(
    how: str, form: str, runtime: Path, figure: Callable[[str], None]
) -> None:
    with StdioServer(SERVER, env=ENDS_ITSELF) as server, _stalled(server.publish(n=LARGE)) as sock:
        started = time.monotonic()
        if how == "end of stdin":
            server.stdin.close()
        else:
            server.popen.send_signal(signal.Signals[how])
        server.popen.wait(PATIENCE_SECONDS)  # nothing is read from the socket before that
        took = time.monotonic() - started
        expected, got = _received(sock)
        assert got < expected
        errors = server.err.rest()
    assert server.popen.returncode == 0, errors
    assert "Traceback" not in errors
    assert list(runtime.glob("*.json")) == []
    figure(f"{how} with a stalled reader: ended after {took:.2f} s, the reader got {got} of {expected} bytes")


def test_a_transfer_that_is_read_drains_before_the_end(runtime: Path) -> None:
    with StdioServer(SERVER, env=DRAINS) as server:
        url = server.publish(n=LARGE)
        with _stalled(url, 1 << 20) as sock:
            server.stdin.close()
            expected, got = _received(sock)
            assert got == expected
            server.popen.wait(PATIENCE_SECONDS)
            # The listener closed first: nobody is let in any more.
            with pytest.raises(TransferFailedError):
                fetch(url, settings=Settings(allow_peers=("http://127.0.0.1:*",)))


def test_a_tool_that_goes_on_does_not_outlive_a_signal(runtime: Path) -> None:
    with StdioServer(SERVER) as server:
        server.write(
            {
                "jsonrpc": "2.0",
                "id": 99,
                "method": "tools/call",
                "params": {"name": "busy", "arguments": {"seconds": 600}},
            }
        )
        server.publish(n=10)
        server.popen.send_signal(signal.SIGTERM)
        server.popen.wait(PATIENCE_SECONDS)  # a fifth of what the tool takes
        assert server.popen.returncode == 128 + signal.SIGTERM


def test_a_second_signal_does_what_it_always_did(runtime: Path) -> None:
    with StdioServer(SERVER, env=DRAINS) as server, _stalled(server.publish(n=LARGE)):
        server.popen.send_signal(signal.SIGTERM)
        until(lambda: not _listens(server), "the first signal is seen")
        server.popen.send_signal(signal.SIGTERM)
        server.popen.wait(PATIENCE_SECONDS)
        assert server.popen.returncode == -signal.SIGTERM


def _listens(server: StdioServer) -> bool:
    """Whether the process still has a listening socket."""
    try:
        links = [os.readlink(f"/proc/{server.popen.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{server.popen.pid}/fd")]
    except OSError:
        return False
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[3] == "0A" and row[9] in inodes for row in rows)


@twice
def test_every_line_of_stdout_is_json_rpc_through_every_failure(
    form: str, runtime: Path, figure: Callable[[str], None]
) -> None:
    with StdioServer(SERVER) as server:
        url = server.publish(n=100_000)
        parts = urlsplit(url)
        for sent in (
            b"\x00\xff\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"GET /s2sp/data/x HTTP/1.1\r\n\r\n",
        ):
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS) as sock:
                sock.sendall(sent)
                sock.recv(1000)
        assert fetch(url).num_rows == 100_000
        assert server.tool("total", resource_url="http://127.0.0.1:1/s2sp/data/nothing")["isError"]
        assert server.tool("clumsy", resource_url=url)["isError"]
        assert server.tool("missing")
        server.tool("fail_transfers", after=0)
        with pytest.raises(TransferFailedError):
            fetch(url, ["0-99"])
        server.popen.send_signal(signal.SIGTERM)
        server.popen.wait(PATIENCE_SECONDS)
        server.out.rest()
        lines = server.check_output()
    figure(f"stdout of a stdio server through failures: {lines} lines, all JSON-RPC")
    assert lines >= 6


def test_two_stdio_servers_at_once(runtime: Path) -> None:
    with StdioServer(SERVER) as first, StdioServer(SERVER) as second:
        one, two = first.publish(n=10), second.publish(n=20)
        assert urlsplit(one).port != urlsplit(two).port
        # Each consumes what the other has published, in the other's process and in its own.
        for server in (first, second):
            for url, wanted in ((one, "45"), (two, "190")):
                assert server.tool("total", resource_url=url)["content"][0]["text"] == wanted
        first.stdin.close()
        first.popen.wait(PATIENCE_SECONDS)
        assert second.tool("total", resource_url=one)["isError"]
        assert second.tool("total", resource_url=two)["content"][0]["text"] == "190"


def test_a_port_that_is_taken_is_said_plainly(runtime: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            SettingError, match=f"cannot listen on '127.0.0.1' port {port}: Address already in use.*0 for a free one"
        ):
            DataPlane(port=port).start()
        with Process(str(SERVER), "quiet", str(port)) as server:
            server.popen.wait(PATIENCE_SECONDS)
            errors = server.err.rest()
            assert server.popen.returncode == 1
            assert f"port {port}: Address already in use" in errors
            assert server.out.rest() == ""


# --- transfers that end badly -------------------------------------------------------------------------------------------


def test_stopping_breaks_what_does_not_drain(runtime: Path) -> None:
    plane = DataPlane(Settings.from_env(drain_seconds=0.3)).start()
    handle = plane.publish(table(LARGE, 1))
    with _stalled(handle.resource_url) as sock:
        plane.stop()  # returns although nothing more is read from the socket
        expected, got = _received(sock)
        assert 0 < got < expected
    assert plane.stats().held_bytes == 0
    with pytest.raises(LifecycleError, match="stopped"):
        plane.publish([{"a": 1}])


@pytest.mark.parametrize("after", [0, 1, 30])
def test_an_exception_in_the_middle_is_a_broken_transfer(
    after: int, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Response.slices

    def slices(self: Response) -> Any:
        for number, view in enumerate(original(self)):
            if number == after:
                raise RuntimeError("no reason to speak of")
            yield view

    with DataPlane(Settings.from_env(same_host="off")) as plane:
        handle = plane.publish(table(LARGE, 1))
        monkeypatch.setenv("FRAMEWIRE_SAME_HOST", "off")
        wanted = fetch(handle.resource_url)
        monkeypatch.setattr(Response, "slices", slices)
        with _stalled(handle.resource_url, 1 << 20) as sock:
            expected, arrived = _received(sock)
            assert arrived < expected
        # framewire's own client comes back for the rest, and has it whole or says that it broke.
        got = None
        with contextlib.suppress(TransferFailedError):
            got = fetch(handle.resource_url)
        assert got is None or got.equals(wanted)
        monkeypatch.setattr(Response, "slices", original)
        assert fetch(handle.resource_url).num_rows == LARGE
        until(lambda: plane.stats().readers == 0, "the reader is let go")


# --- one process --------------------------------------------------------------------------------------------------------

FORK = textwrap.dedent(
    """
    import os, sys, traceback
    from framewire import DataPlane, LifecycleError
    from framewire.client import fetch

    def child(plane, handle):
        for what in (lambda: plane.publish([{"a": 1}]), lambda: plane.revoke(handle), plane.stats, lambda: plane.start()):
            try:
                what()
            except LifecycleError as exc:
                assert "forked process" in str(exc) and "in each process" in str(exc)
            else:
                return 1
        with DataPlane() as own:
            return 0 if fetch(own.publish([{"a": 1}]).resource_url).num_rows == 1 else 2

    with DataPlane() as plane:
        handle = plane.publish([{"a": 1}] * 5)
        assert fetch(handle.resource_url).num_rows == 5
        pid = os.fork()
        if pid == 0:
            code = 9
            try:
                code = child(plane, handle)
                plane.stop()  # as on the way out of its "with": all of it is the parent's
            except BaseException:
                traceback.print_exc()
                code = 8
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        # The child has taken nothing along: neither the listener nor the registry's entry, nor the handle.
        assert fetch(handle.resource_url).num_rows == 5
        again = os.fork()
        if again == 0:
            sys.stdin.read()
            os._exit(0)
    import socket
    with socket.socket() as sock:
        port = int(handle.resource_url.split(":")[2].split("/")[0])
        assert sock.connect_ex(("127.0.0.1", port)) != 0, "a child that lives on keeps the port open"
    print("good", flush=True)
    """
)


def test_a_fork_is_detected_and_harms_nobody(tmp_path: Path, runtime: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(FORK)
    with Process("-W", "ignore::DeprecationWarning", str(script)) as process:
        line = process.out.next()
        assert line == "good\n", process.err.rest()
        process.stdin.close()
        process.popen.wait(PATIENCE_SECONDS)


APP = textwrap.dedent(
    """
    from framewire import S2SPServer, DataPlane
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route, Mount
    from contextlib import asynccontextmanager
    import os

    plane = DataPlane()

    @asynccontextmanager
    async def lifespan(app):
        plane.start(listen={listen})
        try:
            yield
        finally:
            plane.stop()

    async def publish(request):
        handle = await plane.publish_async([{{"a": 1}}] * 3)
        return JSONResponse({{"url": handle.resource_url, "pid": os.getpid()}}, headers={{"connection": "close"}})

    app = Starlette(routes=[Route("/publish", publish), Mount("/", plane.app)], lifespan=lifespan)
    """
)


def _workers(tmp_path: Path, *, listen: bool, **env: str) -> tuple[Process, int]:
    (tmp_path / "workers_app.py").write_text(APP.format(listen=listen))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = (
        "-m",
        "uvicorn",
        "workers_app:app",
        "--app-dir",
        str(tmp_path),
        "--workers",
        "2",
        "--port",
        str(port),
        "--no-access-log",
    )
    return Process(*command, env={k: v.format(port=port) for k, v in env.items()}), port


def test_a_second_worker_behind_one_url_is_refused_by_name(tmp_path: Path, runtime: Path) -> None:
    process, port = _workers(tmp_path, listen=False, FRAMEWIRE_PUBLIC_URL="http://127.0.0.1:{port}")
    try:
        seen = ""
        while "second worker" not in seen:
            line = process.err.next()
            assert line is not None, seen
            seen += line
        message = next(line for line in seen.splitlines() if "second worker" in line)
        assert re.search(rf"Another process \(pid \d+\) publishes under http://127.0.0.1:{port}", message)
        assert "Run one worker (uvicorn --workers 1)" in message
        assert str(process.popen.pid) not in message  # it names the other worker
    finally:
        _end(process)


def test_workers_with_listeners_of_their_own_all_work(tmp_path: Path, runtime: Path) -> None:
    import httpx

    process, port = _workers(tmp_path, listen=True)
    try:
        base = f"http://127.0.0.1:{port}"
        until(lambda: "".join(process.err.all).count("startup complete") == 2, "both are up")
        pids, ports = set(), set()
        with httpx.Client(trust_env=False) as client:
            for _ in range(20):
                made = client.get(f"{base}/publish", timeout=PATIENCE_SECONDS).json()
                assert fetch(made["url"]).num_rows == 3
                pids.add(made["pid"])
                ports.add(urlsplit(made["url"]).port)
        assert len(pids) == len(ports)
        assert port not in ports
    finally:
        _end(process)


def _end(process: Process) -> None:
    """uvicorn's supervisor ends its workers on SIGTERM; kill -9 would leave them."""
    process.popen.send_signal(signal.SIGTERM)
    process.popen.wait(PATIENCE_SECONDS)
    process.kill()


def test_one_process_may_have_several_planes_behind_one_url(runtime: Path) -> None:
    settings = Settings.from_env(public_url="https://data.example.org/several")
    first, second = DataPlane(settings).start(listen=False), DataPlane(settings).start(listen=False)
    first.stop()
    other = textwrap.dedent(
        """
        from framewire import DataPlane, LifecycleError
        try:
            DataPlane(public_url="https://data.example.org/several").start(listen=False)
        except LifecycleError as exc:
            print(exc, flush=True)
        else:
            print("started", flush=True)
        """
    )
    with Process("-c", other) as process:
        assert f"Another process (pid {os.getpid()})" in (process.out.next() or "")
    second.stop()
    with Process("-c", other) as process:
        assert process.out.next() == "started\n"


def test_threads_end_with_the_plane(runtime: Path) -> None:
    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name in ("framewire-data-plane", "framewire-sweeper")]

    before = ours()
    for _ in range(3):
        with DataPlane() as plane:
            plane.publish([{"a": 1}])
    until(lambda: len(ours()) <= len(before), "listener and sweeper have ended")
