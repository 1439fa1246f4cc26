"""framewire between processes of one user on one host: a trusted peer, bodies opened in place."""

from __future__ import annotations

import importlib.util
import sys

from bench.contenders.framewire_http import Client, Server, settings


def unavailable() -> str | None:
    if not sys.platform.startswith("linux"):
        return "sealed memfds are Linux's"
    if importlib.util.find_spec("framewire._memfd") is None:
        return "not built yet: framewire._memfd is missing"
    return None


def make_server() -> Server:
    return Server(settings("auto"))


def make_client() -> Client:
    return Client(settings("auto"), trusted=True)
