"""Clients of a data plane over real sockets: framewire's own, and httpx for the bytes."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

import httpx
import pyarrow as pa

from framewire import wire
from framewire.client import PeerPolicy, fetch
from framewire.handle import Handle
from framewire.plane import DataPlane
from framewire.settings import Settings

ARROW: Final = {"Accept": wire.ARROW_STREAM, "Accept-Encoding": "identity"}
VIEWS: Final = {**ARROW, wire.H_TYPES: wire.TYPES_VIEWS}
JSON: Final = {"Accept": "*/*", "Accept-Encoding": "identity"}


class Wire:
    """A running data plane and its clients."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane = plane
        # Allowed and not trusted: what arrives is checked in full.
        self._policy = PeerPolicy(allow=[plane.base_url])
        self._settings = Settings()
        self._transport = httpx.HTTPTransport()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    def fetch(self, handle: Handle, row_ids: Any = None, columns: Any = None) -> pa.Table:
        """As a consumer does it."""
        return fetch(handle.resource_url, row_ids, columns, settings=self._settings, policy=self._policy)

    def ask(
        self, handle: Handle, headers: dict[str, str], payload: dict[str, Any] | None = None, status: int = 200
    ) -> bytes:
        """The bytes of an answer: of the whole body, or of a selection."""
        method = "GET" if payload is None else "POST"
        request = httpx.Request(method, handle.resource_url, headers=headers, json=payload)
        response = self._transport.handle_request(request)
        body = response.read()
        assert response.status_code == status, body
        return body
