"""Many connections at once: those that stall, those that download, those that are reset."""

from __future__ import annotations

import concurrent.futures
import os
import resource
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from framewire.client import fetch
from tests.faults.forms import PATIENCE_SECONDS, percentile, trials, until
from tests.faults.plane_worker import table
from tests.faults.processes import PlaneProcess

_MIB = 1 << 20
_ARROW = "application/vnd.apache.arrow.stream"


@contextmanager
def _descriptors(wanted: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} descriptors; the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _connect(url: str, window: int | None = None) -> socket.socket:
    parts = urlsplit(url)
    sock = socket.socket()
    sock.settimeout(PATIENCE_SECONDS)
    if window is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    sock.connect((parts.hostname, parts.port))
    return sock


def _get(url: str) -> bytes:
    return f"GET {urlsplit(url).path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {_ARROW}\r\n\r\n".encode()


def _half(url: str, kind: int) -> socket.socket:
    sock = _connect(url, 4096)
    sent = (
        b"",
        b"POST /s2sp/data/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ",
        b"POST /s2sp/data/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
        _get(url),
    )[kind]
    sock.sendall(sent)
    return sock


def _latencies(url: str, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        assert fetch(url, ["5"]).num_rows == 1
        seconds.append(time.perf_counter() - started)
    return seconds


def _is_closed(sock: socket.socket) -> bool:
    """Whether the server has ended the connection; what a slow reader has been sent so far stays where it is."""
    sock.setblocking(False)
    try:
        return not sock.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        return True


@trials(40, 500)
def test_stalled_sockets_cost_good_requests_little_and_are_closed(
    trials: int, runtime: None, figure: Callable[[str], None]
) -> None:
    with _descriptors(2 * trials + 200), PlaneProcess() as server, ExitStack() as open_sockets:
        url = server("publish", rows=1_000_000, seed=1)["url"]
        base = server("measure")["tasks"]
        _latencies(url, 20)
        count = 1000 if trials >= 500 else 100
        idle = percentile(_latencies(url, count), 0.99)
        socks = [open_sockets.enter_context(_half(url, n % 4)) for n in range(trials)]
        started = time.monotonic()
        busy = percentile(_latencies(url, count), 0.99)
        # Nothing is read from any of them but the sign of the end: a slow reader's is that its transfer is given up.
        quiet = [sock for n, sock in enumerate(socks) if n % 4 != 3]
        until(lambda: server("count")["readers"] == 0, "slow readers are given up")
        until(lambda: all(_is_closed(sock) for sock in quiet), "half requests are closed")
        until(lambda: server("count")["tasks"] <= base + 1, "no task of theirs is left")
        closed = time.monotonic() - started
        assert fetch(url, ["5"]).num_rows == 1
    figure(
        f"slow sockets: {trials} half-open, half-header, half-body and slow-reading at once: good requests' p99 "
        f"{busy * 1000:.1f} ms against {idle * 1000:.1f} ms idle ({busy / idle:.2f} x), all closed after {closed:.1f} s"
    )


@trials(50, 1000)
def test_many_downloads_at_once(trials: int, runtime: None, figure: Callable[[str], None]) -> None:
    rows = _MIB // 24
    budget = 64 * _MIB
    env = {"FRAMEWIRE_MEMORY_BUDGET_BYTES": str(budget), "FRAMEWIRE_SAME_HOST": "off"}
    with _descriptors(trials + 200), PlaneProcess(**env) as server, ExitStack() as open_sockets:
        published = server("publish", rows=rows, seed=3)
        url, nbytes = published["url"], published["nbytes"]
        fetch(url)
        base = server("measure")
        # All are open, and have asked, before any is read.
        socks = [open_sockets.enter_context(_connect(url)) for _ in range(trials)]
        for sock in socks:
            sock.sendall(_get(url))
        peak = server("measure")["rss"]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            sizes = [pool.submit(_read_answer, sock) for sock in socks]
            while not all(job.done() for job in sizes):
                peak = max(peak, server("measure")["rss"])
        errors = [job.result() for job in sizes if job.result() != (200, nbytes)]
        socks.clear()
        open_sockets.close()
        until(lambda: server("count")["readers"] == 0, "every reader is done")
        assert server("measure")["reserved"] == 0
        assert fetch(url).drop_columns(["_row_id"]).equals(table(rows, 3))
    grown = peak - base["rss"]
    assert errors == []
    assert grown <= 1.1 * budget
    figure(
        f"downloads: {trials} of {nbytes / _MIB:.2f} MiB at once: {len(errors)} errors, server's memory grew by at most "
        f"{grown / _MIB:.0f} MiB (budget {budget / _MIB:.0f} MiB)"
    )


def _read_answer(sock: socket.socket) -> tuple[int, int]:
    with sock.makefile("rb") as file:
        status = int(file.readline().split()[1])
        length = 0
        while (line := file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, len(file.read(length))


@trials(20, 200)
def test_resets_in_the_middle_leave_nothing_behind(trials: int, runtime: None, figure: Callable[[str], None]) -> None:
    with PlaneProcess(FRAMEWIRE_SAME_HOST="off") as server:
        url = server("publish", rows=100 * _MIB // 24, seed=4)["url"]
        for _ in range(3):
            _reset_in_the_middle(url)
        until(lambda: server("count")["readers"] == 0, "the first are let go")
        base = server("measure")
        for _ in range(trials):
            _reset_in_the_middle(url)
        took = until(lambda: server("count")["readers"] == 0, "every reader is let go")
        until(lambda: server("count")["tasks"] <= base["tasks"], "no task is left")
        after = server("measure")
        assert fetch(url, ["5"]).num_rows == 1
    assert after["descriptors"] <= base["descriptors"] + 1
    assert after["rss"] <= base["rss"] + 32 * _MIB
    assert after["reserved"] == 0
    figure(
        f"resets: {trials} in the middle of 100 MB downloads: memory {(after['rss'] - base['rss']) / _MIB:+.1f} MiB, tasks "
        f"{after['tasks'] - base['tasks']:+d}, descriptors {after['descriptors'] - base['descriptors']:+d}, {took:.1f} s "
        "after the last"
    )


def _reset_in_the_middle(url: str) -> None:
    with _connect(url) as sock:
        sock.sendall(_get(url))
        received = 0
        while received < 65536:
            received += len(sock.recv(65536))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_connection_above_the_limit_is_told_so_and_the_next_is_served(runtime: None) -> None:
    with PlaneProcess(FRAMEWIRE_MAX_CONNECTIONS="4") as server:
        url = server("publish", rows=10, seed=1)["url"]
        with ExitStack() as stack:
            socks = [stack.enter_context(_connect(url)) for _ in range(8)]
            for sock in socks:
                sock.sendall(_get(url))
            answers = [int(sock.recv(65536).split()[1]) for sock in socks]
        assert set(answers) <= {200, 503}
        assert 503 in answers
        until(lambda: fetch(url).num_rows == 10, "served again")


def test_measured_processes_are_on_linux() -> None:
    assert os.path.exists("/proc/self/statm")
