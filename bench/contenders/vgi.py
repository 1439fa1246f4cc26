"""vgi-rpc, another Arrow RPC. It needs a later Python than framewire does."""

from __future__ import annotations

from typing import NoReturn

from bench.contenders import interpreter_of

NEEDS = "3.13"
"""``Requires-Python`` of every release of vgi-rpc on PyPI up to 0.52.2."""


def unavailable() -> str | None:
    if interpreter_of(NEEDS) is None:
        return f"vgi-rpc needs Python {NEEDS} or later, and this machine has none"
    return "not written: it could not be tried on a machine without a Python that it accepts"


def make_server() -> NoReturn:
    raise NotImplementedError(unavailable())


def make_client() -> NoReturn:
    raise NotImplementedError(unavailable())
