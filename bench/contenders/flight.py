"""pyarrow Flight on its defaults: a server that streams the table's batches, a client that reads them all."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.flight as fl


class _Service(fl.FlightServerBase):  # type: ignore[misc]
    table: pa.Table

    def do_get(self, context: Any, ticket: Any) -> Any:
        wanted = json.loads(ticket.ticket)
        table = self.table if wanted["columns"] is None else self.table.select(wanted["columns"])
        if wanted["row_ids"] is not None:
            table = table.take(pa.array(wanted["row_ids"], pa.int64()))
        return fl.RecordBatchStream(table)


class Server:
    def __init__(self, host: str) -> None:
        self._host = host
        self._service = _Service(f"grpc://{host}:0")
        threading.Thread(target=self._service.serve, daemon=True).start()

    def publish(self, table: pa.Table) -> None:
        self._service.table = table

    def handles(self, count: int) -> list[str]:
        return [f"grpc://{self._host}:{self._service.port}"] * count


class Client:
    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        client = self._clients.get(handle)
        if client is None:
            client = self._clients.setdefault(handle, fl.connect(handle))
        ticket = json.dumps({"columns": columns, "row_ids": row_ids}).encode()
        table = client.do_get(fl.Ticket(ticket)).read_all()
        # Without rechunk=False Polars would copy every batch into one.
        frame = pl.from_arrow(table, rechunk=False)
        assert isinstance(frame, pl.DataFrame)
        return frame


def make_server(*, host: str = "127.0.0.1") -> Server:
    return Server(host)


def make_client() -> Client:
    return Client()
