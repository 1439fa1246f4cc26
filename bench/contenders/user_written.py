"""What one writes without framewire: Starlette streams the batches as Arrow IPC, httpx reads them, Polars parses."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence

import httpx
import polars as pl
import pyarrow as pa
import pyarrow.ipc
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.contenders._http import serve


class Server:
    def __init__(self, host: str) -> None:
        self._table: pa.Table | None = None
        self._base = serve(Starlette(routes=[Route("/table", self._answer)]), host)

    def publish(self, table: pa.Table) -> None:
        self._table = table

    def handles(self, count: int) -> list[str]:
        return [f"{self._base}/table"] * count

    async def _answer(self, request: Request) -> StreamingResponse:
        table = self._table
        assert table is not None
        columns = request.query_params.getlist("columns")
        if columns:
            table = table.select(columns)
        if rows := request.query_params.get("row_ids"):
            table = table.take(pa.array(json.loads(rows), pa.int64()))
        return StreamingResponse(_chunks(table), media_type="application/vnd.apache.arrow.stream")


def _chunks(table: pa.Table) -> Iterator[bytes]:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


class Client:
    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._http = httpx.Client(timeout=120, trust_env=False, limits=limits)

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        query: dict[str, str | list[str]] = {}
        if columns is not None:
            query["columns"] = list(columns)
        if row_ids is not None:
            query["row_ids"] = json.dumps(list(row_ids))
        response = self._http.get(handle, params=query).raise_for_status()
        return pl.read_ipc_stream(response.content)


def make_server(*, host: str = "127.0.0.1") -> Server:
    return Server(host)


def make_client() -> Client:
    return Client()
