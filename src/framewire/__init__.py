"""framewire: tables move between MCP servers as Arrow, past the model.

Importing this package imports no server, CLI or dataframe library: each name below is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from framewire import errors
from framewire.errors import *  # noqa: F403  (every error; they import nothing)

if TYPE_CHECKING:
    from framewire.client import PeerPolicy as PeerPolicy
    from framewire.client import fetch as fetch
    from framewire.client import fetch_async as fetch_async
    from framewire.consume import resolve as resolve
    from framewire.consume import resolve_async as resolve_async
    from framewire.direct_channel import DirectChannel as DirectChannel
    from framewire.handle import Handle as Handle
    from framewire.plane import DataPlane as DataPlane
    from framewire.server import S2SPServer as S2SPServer
    from framewire.settings import Settings as Settings
    from framewire.table import to_table as to_table

__version__ = "0.1.0"

__all__ = [
    "DataPlane",
    "DirectChannel",
    "Handle",
    "PeerPolicy",
    "S2SPServer",
    "Settings",
    "__version__",
    "fetch",
    "fetch_async",
    "resolve",
    "resolve_async",
    "to_table",
]
__all__ += errors.__all__

_HOMES: Final = {
    "DataPlane": "plane",
    "DirectChannel": "direct_channel",
    "Handle": "handle",
    "PeerPolicy": "client",
    "S2SPServer": "server",
    "Settings": "settings",
    "fetch": "client",
    "fetch_async": "client",
    "resolve": "consume",
    "resolve_async": "consume",
    "to_table": "table",
}
"""Public name to the module that holds it."""


if not TYPE_CHECKING:  # or a misspelled import would pass the checkers

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
