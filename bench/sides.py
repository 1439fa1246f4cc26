"""What the two processes of a contender do when told: called by ``bench.worker``, never by the parent."""

from __future__ import annotations

import asyncio
import gc
import importlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from bench import datasets, memory

State = dict[str, Any]


def start_server(state: State, module: str, options: dict[str, Any]) -> None:
    """Make the contender's server."""
    state["server"] = importlib.import_module(module).make_server(**options)


def prepare(state: State, dataset: str, scale: float) -> None:
    """Make a table's file where it is missing: its maker may come from a registry, which a namespace cannot reach."""
    datasets.prepare(dataset, scale)


def publish(state: State, dataset: str, scale: float, max_rows: int | None = None) -> dict[str, Any]:
    """Load a table and give it to the server, which alone keeps it.

    Returns:
        ``rows``, ``columns``, ``column_names``, ``nbytes`` (as an Arrow IPC stream), ``seconds`` (of publishing),
        ``fingerprint``, and ``names``, the columns that it is of.
    """
    table = datasets.load(dataset, scale)
    if max_rows is not None:
        table = table.slice(0, max_rows)
    facts = {"rows": table.num_rows, "columns": table.num_columns, "nbytes": datasets.stream_bytes(table)}
    facts["column_names"] = table.column_names
    facts["names"] = list(dict.fromkeys([table.column_names[0], table.column_names[-1]]))
    facts["fingerprint"] = fingerprint(table, facts["names"])
    start = time.perf_counter()
    state["server"].publish(table)
    return facts | {"seconds": time.perf_counter() - start}


def handles(state: State, count: int) -> list[str]:
    """Handles for ``count`` fetches."""
    made: list[str] = state["server"].handles(count)
    return made


def start_client(state: State, module: str, options: dict[str, Any]) -> None:
    """Make the contender's client. Polars starts its threads before anything is timed."""
    import polars as pl

    pl.DataFrame({"a": [1, 2]}).sort("a")
    state["client"] = importlib.import_module(module).make_client(**options)
    # What the modules made is not looked at by every later collection.
    gc.freeze()


def fingerprint(data: Any, names: Sequence[str]) -> str:
    """First and last values of some columns, to see that the same table arrived; empty for bare bytes."""
    import polars as pl

    if not hasattr(data, "num_rows") and not isinstance(data, pl.DataFrame):
        return ""
    frame: Any = data if isinstance(data, pl.DataFrame) else pl.from_arrow(data.select(names), rechunk=False)
    picked = frame.select([name for name in names if name in frame.columns])
    return repr(picked.head(2).rows()) + repr(picked.tail(2).rows())


def fetch(
    state: State,
    handles: list[str],
    keep: bool,
    warmup: int,
    names: list[str],
    collect: bool = True,
    columns: list[str] | None = None,
    row_ids: list[int] | None = None,
) -> dict[str, Any]:
    """Fetch once for each handle; the first ``warmup`` are not counted.

    Args:
        state: Holds the client.
        handles: From :func:`handles`.
        keep: Keep every result until the end, so that each needs fresh memory; or drop each before the next is asked for.
        warmup: Fetches that are not counted.
        names: Columns of the fingerprint.
        collect: Collect garbage before each, so that a body in a cycle counts as dropped. For small fetches that would take
            longer than they do, and leave the processor's caches cold.
        columns: Columns to ask for, or all.
        row_ids: Rows to ask for, or all.

    Returns:
        ``seconds`` of each, ``shape`` and ``fingerprint`` of the last, ``nbytes`` of its frame.
    """
    client, kept, seconds = state["client"], [], []
    result: Any = None
    for handle in handles:
        result = None
        if collect:
            gc.collect()
        start = time.perf_counter()
        result = client.fetch(handle, columns, row_ids)
        seconds.append(time.perf_counter() - start)
        if keep:
            kept.append(result)
    shape = [result.height, result.width] if hasattr(result, "height") else [0, 0]
    nbytes = result.estimated_size() if hasattr(result, "estimated_size") else len(memoryview(result))
    return {"seconds": seconds[warmup:], "shape": shape, "nbytes": nbytes, "fingerprint": fingerprint(result, names)}


def load(state: State, handles: list[str], endless: bool, clients: int, seconds: float) -> dict[str, Any]:
    """``clients`` fetch at once, each the next handle as soon as it has the last, until the time or the handles end.

    Args:
        state: Holds the client.
        handles: Taken in turn.
        endless: Begin anew when they end: handles that are good for any number of fetches.
        clients: Threads, or asyncio tasks where the contender's client is asynchronous.
        seconds: For how long.

    Returns:
        ``requests`` answered and ``seconds`` they took.
    """
    client = state["client"]
    waiting = itertools.cycle(handles) if endless else iter(handles)  # next() is atomic under the interpreter lock
    counts = itertools.count()
    start = time.perf_counter()
    deadline = start + seconds
    if hasattr(client, "fetch_async"):

        async def task() -> None:
            while time.perf_counter() < deadline and (handle := next(waiting, None)) is not None:
                await client.fetch_async(handle)
                next(counts)

        async def tasks() -> None:
            await asyncio.gather(*(task() for _ in range(clients)))

        asyncio.run(tasks())
    else:

        def loop() -> None:
            while time.perf_counter() < deadline and (handle := next(waiting, None)) is not None:
                client.fetch(handle)
                next(counts)

        _in_threads(loop, clients)
    return {"requests": next(counts), "seconds": time.perf_counter() - start}


def peak_above_base(state: State, small: str, handle: str) -> dict[str, int]:
    """Memory that one fetch takes at its worst, above what the process held before.

    Args:
        state: Holds the client.
        small: Handle of a small table, fetched first: code and connections are in place then.
        handle: Handle of the table.
    """
    for _ in range(3):
        state["client"].fetch(small)
    base = mark(state)
    state["frame"] = state["client"].fetch(handle)
    return {"base": base, "peak": memory.peak_rss_bytes()}


def mark(state: State) -> int:
    """Start this process's peak afresh. Returns what it holds now, in bytes."""
    gc.collect()
    memory.reset_peak()
    return memory.rss_bytes()


def open_stalled(state: State, handle: str, count: int, columns: list[str] | None) -> int:
    """Ask for a body on ``count`` connections and read no further than the head of each answer.

    Returns:
        Bytes of one body.
    """
    parts = urlsplit(handle)
    payload = json.dumps({} if columns is None else {"columns": columns}).encode()
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/vnd.apache.arrow.stream\r\n"
        f"S2SP-Types: views\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    ).encode()
    stalled = state["stalled"] = []
    for _ in range(count):
        sock = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=60)
        sock.sendall(head + payload)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += sock.recv(1024)
        text, _, rest = answer.partition(b"\r\n\r\n")
        length = int(text.lower().split(b"content-length:")[1].split()[0])
        stalled.append((sock, length - len(rest)))
    return length


def drain(state: State) -> None:
    """Read what the stalled connections still have to give, a little of each in turn."""
    waiting = state.pop("stalled")
    buffer = bytearray(1 << 18)
    while waiting:
        still = []
        for sock, left in waiting:
            left -= sock.recv_into(buffer, min(left, len(buffer)))
            if left:
                still.append((sock, left))
            else:
                sock.close()
        waiting = still


def _in_threads(function: Any, count: int) -> None:
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            function()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
