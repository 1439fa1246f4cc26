"""The data plane's HTTP side: a pure ASGI app over a body store, and the servers that run it.

``DataApp`` answers wire version 1. It knows the store and the wire, and no other stage of a table's path.
"""

from __future__ import annotations

from framewire.serve._app import DataApp
from framewire.serve._hosts import HostPolicy
from framewire.serve._listener import Listener
from framewire.serve._uvicorn import bind, serve_both_planes

__all__ = ["DataApp", "HostPolicy", "Listener", "bind", "serve_both_planes"]
