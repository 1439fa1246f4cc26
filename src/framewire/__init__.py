"""framewire: tables move between MCP servers as Arrow, past the model.

Importing this package imports no server, CLI or dataframe library: each name below is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from framewire.client import PeerPolicy as PeerPolicy
    from framewire.client import fetch as fetch
    from framewire.client import fetch_async as fetch_async
    from framewire.consume import resolve as resolve
    from framewire.consume import resolve_async as resolve_async
    from framewire.direct_channel import DirectChannel as DirectChannel
    from framewire.errors import ArgumentError as ArgumentError
    from framewire.errors import BadBodyError as BadBodyError
    from framewire.errors import BadHostError as BadHostError
    from framewire.errors import BadRangeError as BadRangeError
    from framewire.errors import ColumnNameError as ColumnNameError
    from framewire.errors import ExpiredError as ExpiredError
    from framewire.errors import InvalidTokenError as InvalidTokenError
    from framewire.errors import LeasedError as LeasedError
    from framewire.errors import LifecycleError as LifecycleError
    from framewire.errors import NoRoomError as NoRoomError
    from framewire.errors import NotATableError as NotATableError
    from framewire.errors import OverloadedError as OverloadedError
    from framewire.errors import PublishError as PublishError
    from framewire.errors import ReplyTooLargeError as ReplyTooLargeError
    from framewire.errors import RequestError as RequestError
    from framewire.errors import RevokedError as RevokedError
    from framewire.errors import RowOutOfRangeError as RowOutOfRangeError
    from framewire.errors import S2SPError as S2SPError
    from framewire.errors import SelectionError as SelectionError
    from framewire.errors import SettingError as SettingError
    from framewire.errors import SignatureError as SignatureError
    from framewire.errors import SpentError as SpentError
    from framewire.errors import TooLargeError as TooLargeError
    from framewire.errors import TransferDeniedError as TransferDeniedError
    from framewire.errors import TransferFailedError as TransferFailedError
    from framewire.errors import TransferTimeoutError as TransferTimeoutError
    from framewire.errors import UnknownColumnError as UnknownColumnError
    from framewire.errors import UnknownKeyError as UnknownKeyError
    from framewire.errors import UnsupportedTypeError as UnsupportedTypeError
    from framewire.errors import UnsupportedValueError as UnsupportedValueError
    from framewire.errors import UnsupportedVersionError as UnsupportedVersionError
    from framewire.handle import Handle as Handle
    from framewire.plane import DataPlane as DataPlane
    from framewire.server import S2SPServer as S2SPServer
    from framewire.settings import Settings as Settings
    from framewire.table import to_table as to_table

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BadBodyError",
    "BadHostError",
    "BadRangeError",
    "ColumnNameError",
    "DataPlane",
    "DirectChannel",
    "ExpiredError",
    "Handle",
    "InvalidTokenError",
    "LeasedError",
    "LifecycleError",
    "NoRoomError",
    "NotATableError",
    "OverloadedError",
    "PeerPolicy",
    "PublishError",
    "ReplyTooLargeError",
    "RequestError",
    "RevokedError",
    "RowOutOfRangeError",
    "S2SPError",
    "S2SPServer",
    "SelectionError",
    "SettingError",
    "Settings",
    "SignatureError",
    "SpentError",
    "TooLargeError",
    "TransferDeniedError",
    "TransferFailedError",
    "TransferTimeoutError",
    "UnknownColumnError",
    "UnknownKeyError",
    "UnsupportedTypeError",
    "UnsupportedValueError",
    "UnsupportedVersionError",
    "__version__",
    "fetch",
    "fetch_async",
    "resolve",
    "resolve_async",
    "to_table",
]

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
"""Public name to the module that holds it; the errors are all in ``errors``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
