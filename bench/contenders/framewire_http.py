"""framewire over HTTP: publish on a data plane, resolve into a Polars frame. The one-host path is switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pyarrow as pa

from framewire import DataPlane, PeerPolicy, Settings, fetch, resolve
from framewire.client import DirectTransport
from framewire.frame import Form, to_form


class Server:
    def __init__(self, settings: Settings, host: str = "127.0.0.1") -> None:
        self._plane = DataPlane(settings, host=host).start()
        self._url = ""

    def publish(self, table: pa.Table) -> None:
        self._url = self._plane.publish(table).resource_url

    def handles(self, count: int) -> list[str]:
        return [self._url] * count


class Client:
    def __init__(self, settings: Settings, *, trusted: bool, transport: DirectTransport | None = None) -> None:
        self._settings = settings
        self._trusted = trusted
        self._transport = transport
        self._policies: dict[str, PeerPolicy] = {}

    def policy(self, url: str) -> PeerPolicy:
        """Made once for each origin, as a consumer's configuration is."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._policies:
            # Listed by hand, so that the registry of this user's data planes trusts nobody beside.
            self._policies[origin] = PeerPolicy(trust=[origin] if self._trusted else [], allow=[origin])
        return self._policies[origin]

    def fetch(
        self, handle: str, columns: Sequence[str] | None = None, row_ids: Sequence[int] | None = None
    ) -> pl.DataFrame:
        given: dict[str, Any] = {
            "settings": self._settings,
            "policy": self.policy(handle),
            "transport": self._transport,
        }
        if columns is None:
            return resolve(resource_url=handle, row_ids=row_ids, **given)
        table = fetch(handle, row_ids, columns, types="views", **given)
        frame: pl.DataFrame = to_form(table, Form.POLARS_FRAME)
        return frame


def settings(same_host: str) -> Settings:
    """Room for every table of a suite; nothing else differs from the defaults."""
    return Settings(same_host=same_host, ttl_seconds=3600.0)


def make_server(*, trusted: bool = False, host: str = "127.0.0.1") -> Server:
    return Server(settings("off"), host)


def make_client(*, trusted: bool = False) -> Client:
    return Client(settings("off"), trusted=trusted)
