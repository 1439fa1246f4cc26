"""The data plane's HTTP side: a pure ASGI app over a body store, and a listener for it.

``DataApp`` answers wire version 1. It knows the store and the wire, and no other stage of a table's path.
"""

from __future__ import annotations

from framewire.serve._app import DataApp
from framewire.serve._hosts import HostPolicy
from framewire.serve._listener import Listener

__all__ = ["DataApp", "HostPolicy", "Listener"]
