"""A Parquet file in the server's memory over HTTP: fewer bytes on the wire, every value decoded."""

from __future__ import annotations

import io
from collections.abc import Sequence

import httpx
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.contenders._http import serve


class Server:
    def __init__(self, host: str) -> None:
        self._file = b""
        self._base = serve(Starlette(routes=[Route("/table.parquet", self._answer)]), host)

    def publish(self, table: pa.Table) -> None:
        sink = io.BytesIO()
        pq.write_table(table, sink)
        self._file = sink.getvalue()

    def handles(self, count: int) -> list[str]:
        return [f"{self._base}/table.parquet"] * count

    async def _answer(self, request: Request) -> Response:
        return Response(self._file, media_type="application/vnd.apache.parquet")


class Client:
    def __init__(self) -> None:
        self._http = httpx.Client(timeout=120, trust_env=False)

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        response = self._http.get(handle).raise_for_status()
        return pl.read_parquet(io.BytesIO(response.content), columns=list(columns) if columns else None)


def make_server(*, host: str = "127.0.0.1") -> Server:
    return Server(host)


def make_client() -> Client:
    return Client()
