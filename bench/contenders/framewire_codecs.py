"""framewire whose client offers the codecs that it is told to, in place of those it would choose."""

from __future__ import annotations

import httpx

from bench.contenders.framewire_http import Client, Server, settings
from framewire import wire
from framewire.client import DirectTransport


class _Offer(httpx.BaseTransport):
    """framewire's own transport; on the way there, what the request accepts is written anew."""

    def __init__(self, codecs: str) -> None:
        self._inner = DirectTransport()
        self._accept = f'{wire.ARROW_STREAM}; codecs="{codecs}"' if codecs else wire.ARROW_STREAM

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["Accept"] = self._accept
        return self._inner.handle_request(request)


def make_server(*, codecs: str, host: str = "127.0.0.1") -> Server:
    return Server(settings("off"), host)


def make_client(*, codecs: str) -> Client:
    return Client(settings("off"), trusted=True, transport=_Offer(codecs))
