"""framewire whose client offers the codecs that it is told to, in place of those it would choose."""

from __future__ import annotations

from typing import Any

from bench.contenders.framewire_http import Client, Server, settings
from framewire import wire
from framewire.client import DirectTransport


class _Offer(DirectTransport):
    """framewire's own transport; on the way there, what the request accepts is written anew."""

    def __init__(self, codecs: str) -> None:
        super().__init__()
        accept = f'{wire.ARROW_STREAM}; codecs="{codecs}"' if codecs else wire.ARROW_STREAM
        self._accept = (b"Accept", accept.encode())

    def send(self, call: Any) -> Any:
        headers = tuple(self._accept if name == b"Accept" else (name, value) for name, value in call.request.headers)
        call.request = call.request._replace(headers=headers)
        return super().send(call)


def make_server(*, codecs: str, host: str = "127.0.0.1") -> Server:
    return Server(settings("off"), host)


def make_client(*, codecs: str) -> Client:
    return Client(settings("off"), trusted=True, transport=_Offer(codecs))
