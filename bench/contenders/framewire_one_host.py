"""framewire between processes of one user on one host: a trusted peer, bodies opened in place."""

from __future__ import annotations

import sys

import framewire.client
import framewire.plane  # noqa: F401  (imports whatever serves)
from bench.contenders.framewire_http import Client, Server, settings


def unavailable() -> str | None:
    if not sys.platform.startswith("linux"):
        return "sealed memfds are Linux's"
    if "framewire.host.memfd" not in sys.modules:
        return "not built yet: neither serve nor fetch uses framewire.host.memfd"
    return None


def make_server() -> Server:
    return Server(settings("auto"))


def make_client() -> Client:
    return Client(settings("auto"), trusted=True)
