"""The reference implementation, ``mcp-sd``: JSON rows through its own server and its own client.

Runs in that package's environment, which borrows Polars and pyarrow from framewire's (see ``bench.worker``).
"""

from __future__ import annotations

import asyncio
import datetime
import decimal
import secrets
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
from mcp_sd import DirectChannel, S2SPServer


def _plain(value: Any) -> Any:
    """JSON rows hold no dates and no decimals: what a user of the reference has to write before returning them."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, decimal.Decimal) else value


class Server:
    def __init__(self) -> None:
        self._server = S2SPServer("bench", cache_ttl=3600)
        self._entry: dict[str, Any] = {}
        loop = _loop()
        asyncio.run_coroutine_threadsafe(self._server.start(), loop).result(60)

    def publish(self, table: pa.Table) -> None:
        rows = [{k: _plain(v) for k, v in row.items()} for row in table.to_pylist()]
        for i, row in enumerate(rows):
            row["_row_id"] = i
        self._entry = {"data": rows, "tool": "bench", "timestamp": time.time()}

    def handles(self, count: int) -> list[str]:
        """A token each: the reference forgets a body once it is served. Entered as its resource tool does."""
        tokens = [secrets.token_urlsafe(32) for _ in range(count)]
        self._server._data_cache.update({token: dict(self._entry) for token in tokens})
        return [f"{self._server.s2sp_endpoint}/s2sp/data/{token}" for token in tokens]


def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class Client:
    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        return asyncio.run(self.fetch_async(handle, columns, row_ids))

    async def fetch_async(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        call: Coroutine[Any, Any, list[dict[str, Any]]] = DirectChannel.fetch_data(
            handle, list(row_ids) if row_ids is not None else None, list(columns) if columns is not None else None
        )
        return pl.DataFrame(await call, infer_schema_length=None)


def make_server() -> Server:
    return Server()


def make_client() -> Client:
    return Client()
