"""vgi-rpc, another Arrow RPC for Python: a producer stream over its HTTP, or through its shared memory.

Runs in an environment of its own: it needs Python 3.13. What was chosen, and why:

- A table is a producer stream that emits the table's own batches, 23 MB each of lineitem. Over HTTP a batch is one request
  (the stream's state travels in a sealed token); a quarter or twice as many rows in a batch took as long or longer.
- The server is the package's own ``serve_http``, which is waitress with buffers sized for Arrow; gunicorn, which its docs
  name as well, was no faster. The server over shared memory is ``serve_unix``, with threads.
- Three defaults are given up, because others here do not pay for the like; together they halve its speed over loopback.
  Bodies are not compressed (zstd at level 1 takes a third to a half of the speed), the client states no limit on a response's
  size (with one it gathers the body in pieces of 64 KiB: a third), and it does not validate batches in full (a fifth; Flight
  does not either).
- No external storage: results by reference are fetched from S3 or the like, which would measure that store.
- Shared memory is offered by the client, as the docs say: it names a segment with its request, and the server writes each
  batch there in place of the socket. A batch is copied out before its region is given back, because a frame outlives the
  call. The documented alternative to that copy, a segment that is as large as the table, made for one call and kept as long
  as the frame, was slower: all of its pages are new each time.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx2
import polars as pl
import pyarrow as pa
from vgi_rpc import (
    CallContext,
    IpcValidation,
    OutputCollector,
    ProducerState,
    RpcServer,
    ShmPipeTransport,
    Stream,
    StreamState,
)
from vgi_rpc.http import http_connect, serve_http
from vgi_rpc.metadata import SHM_SOURCE_KEY
from vgi_rpc.rpc import RpcConnection, UnixTransport, serve_unix
from vgi_rpc.shm import ShmSegment

_SEGMENT_BYTES = 64 << 20
"""Room for the batch that is under way. A larger batch goes through the socket."""


class Tables(Protocol):
    """The service."""

    def read(self, columns: list[str] | None = None, row_ids: list[int] | None = None) -> Stream[StreamState]:
        """Stream the table, or some of it."""
        ...


@dataclass
class Reading(ProducerState):
    """How far a client has read. Over HTTP it is sent to and fro."""

    columns: list[str] | None
    row_ids: list[int] | None
    position: int = 0

    def produce(self, out: OutputCollector, ctx: CallContext) -> None:
        """Emit the next batch."""
        batches = ctx.implementation.batches(self.columns, self.row_ids)
        out.emit(batches[self.position])
        self.position += 1
        if self.position == len(batches):
            out.finish()


class _Tables:
    def __init__(self) -> None:
        self._table: pa.Table | None = None
        self._batches: list[pa.RecordBatch] = []

    def publish(self, table: pa.Table) -> None:
        self._table, self._batches = table, _batches(table)

    def batches(self, columns: list[str] | None, row_ids: list[int] | None) -> list[pa.RecordBatch]:
        if columns is None and row_ids is None:
            return self._batches
        table = self._table
        assert table is not None
        if columns is not None:
            table = table.select(columns)
        if row_ids is not None:
            table = table.take(pa.array(row_ids, pa.int64())).combine_chunks()
        return _batches(table)

    def read(self, columns: list[str] | None = None, row_ids: list[int] | None = None) -> Stream[Reading]:
        assert self._table is not None
        schema = self._table.schema if columns is None else self._table.select(columns).schema
        return Stream(output_schema=schema, state=Reading(columns, row_ids))


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    """At least one: a stream emits before it ends."""
    return table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


class Server:
    def __init__(self, serve: Callable[[RpcServer], str]) -> None:
        self._tables = _Tables()
        self._address = serve(RpcServer(Tables, self._tables))

    def publish(self, table: pa.Table) -> None:
        self._tables.publish(table)

    def handles(self, count: int) -> list[str]:
        return [self._address] * count

    def close(self) -> None:
        if self._address.startswith("/"):
            shutil.rmtree(Path(self._address).parent)


def _over_http(server: RpcServer, host: str) -> str:
    with socket.socket() as sock:
        sock.bind((host, 0))
        port = sock.getsockname()[1]
    options = {"host": host, "port": port, "compression_level": None, "token_key": secrets.token_bytes(32)}
    threading.Thread(target=serve_http, args=(server,), kwargs=options, daemon=True).start()
    _wait_for(lambda: socket.create_connection((host, port)).close())
    return f"http://{host}:{port}"


def _over_unix(server: RpcServer) -> str:
    path = str(Path(tempfile.mkdtemp(prefix="bench-vgi-")) / "socket")
    threading.Thread(target=serve_unix, args=(server, path), kwargs={"threaded": True}, daemon=True).start()
    _wait_for(lambda: _unix_socket(path).close())
    return path


def _unix_socket(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def _wait_for(connect: Callable[[], None]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            return connect()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class HttpClient:
    def __init__(self) -> None:
        self._proxies: dict[str, Any] = {}
        self._open = contextlib.ExitStack()

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        proxy = self._proxies.get(handle)
        if proxy is None:
            proxy = self._proxies.setdefault(handle, self._connect(handle))
        return _frame(answer.batch for answer in proxy.read(columns=_list(columns), row_ids=_list(row_ids)))

    def _connect(self, url: str) -> Any:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        client = self._open.enter_context(httpx2.Client(base_url=url, timeout=120, trust_env=False, limits=limits))
        # A proxy keeps nothing of a call, so threads share one.
        connection = http_connect(
            Tables,
            client=client,
            ipc_validation=IpcValidation.NONE,
            compression_level=None,
            accepted_max_response_bytes=None,
        )
        return self._open.enter_context(connection)


class ShmClient:
    def __init__(self) -> None:
        self._idle: dict[str, list[_ShmConnection]] = {}
        self._memory = pa.default_cpu_memory_manager()

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        # A connection carries one call at a time.
        idle = self._idle.setdefault(handle, [])
        try:
            connection = idle.pop()
        except IndexError:
            connection = _ShmConnection(handle)
        answers = connection.proxy.read(columns=_list(columns), row_ids=_list(row_ids))
        frame = _frame(map(self._own, answers))
        connection.forget_name()
        idle.append(connection)
        return frame

    def _own(self, answer: Any) -> pa.RecordBatch:
        if answer.custom_metadata is None or SHM_SOURCE_KEY not in answer.custom_metadata:
            return answer.batch
        batch = answer.batch.copy_to(self._memory)
        answer.release()
        return batch


class _ShmConnection:
    """A connection with a segment of its own."""

    def __init__(self, path: str) -> None:
        self._segment: ShmSegment = ShmSegment.create(_SEGMENT_BYTES)
        self._named = True
        # Typed for pipes; of a transport it needs no more than a reader and a writer.
        transport: Any = UnixTransport(_unix_socket(path))
        connection = RpcConnection(
            Tables, ShmPipeTransport(transport, self._segment), ipc_validation=IpcValidation.NONE
        )
        self.proxy: Any = connection.__enter__()

    def forget_name(self) -> None:
        """Both sides have the segment open after a call: without its name nothing is left behind when they end."""
        if self._named:
            self._segment.unlink()
            self._named = False


def _frame(batches: Iterable[pa.RecordBatch]) -> pl.DataFrame:
    # Without rechunk=False Polars would copy every batch into one.
    frame = pl.from_arrow(pa.Table.from_batches(list(batches)), rechunk=False)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def make_server(*, shm: bool = False, host: str = "127.0.0.1") -> Server:
    return Server(_over_unix) if shm else Server(lambda server: _over_http(server, host))


def make_client(*, shm: bool = False) -> HttpClient | ShmClient:
    return ShmClient() if shm else HttpClient()
