"""PlaneKeeper: the data plane of one server, started once, however many sessions enter the server's lifespan."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from framewire.host.addresses import listener_url, warn_unreachable
from framewire.plane import DataPlane
from framewire.settings import Settings

logger = logging.getLogger(__name__)


class PlaneKeeper:
    """Counts who needs the plane: the first starts it, the last stops it, and a later first gets a new one.

    The SDK enters a server's lifespan once per process (stdio) or session manager (HTTP), but once per client in
    memory. Thread-safe; every method but the properties may block while a listener starts or stops.

    Args:
        settings: The plane's settings.
        host: Address of its own listener.
        port: Port of its own listener; 0 for a free one.
    """

    def __init__(self, settings: Settings, *, host: str, port: int) -> None:
        self._settings, self._host, self._port = settings, host, port
        self._lock = threading.Lock()
        self._plane: DataPlane | None = None
        self._users = 0
        self._mounted_at: str | None = None

    @property
    def plane(self) -> DataPlane:
        """The plane, started or not."""
        with self._lock:
            return self._current()

    def acquire(self, *, start: bool = True) -> None:
        """Count one more user, and start the plane unless it may wait for the first publish."""
        with self._lock:
            if start:
                self._start()
            self._users += 1

    def release(self) -> None:
        """Count one user fewer; the last one stops the plane, and its handles end."""
        with self._lock:
            self._users = max(self._users - 1, 0)
            if self._users:
                return
            plane, self._plane = self._plane, None
        if plane is not None:
            plane.stop()

    def started(self) -> DataPlane:
        """The plane, started if it was not; it stays so until the last user leaves."""
        with self._lock:
            return self._start()

    @contextmanager
    def mounted(self, host: str, port: int) -> Iterator[None]:
        """While entered, the plane is served by a listener on ``host`` and ``port``, and opens none of its own."""
        with self._lock:
            self._host, self._mounted_at = host, listener_url(host, port)
        warn_unreachable(host, self._settings.public_url or self._mounted_at)
        self.acquire()
        try:
            yield
        finally:
            self.release()
            self._mounted_at = None

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI app of whichever plane is current."""
        await self.plane.app(scope, receive, send)

    def _current(self) -> DataPlane:
        if self._plane is None:
            self._plane = DataPlane(self._settings, host=self._host, port=self._port)
        return self._plane

    def _start(self) -> DataPlane:
        # Behind a public URL the author mounts the app, unless a port was named for a proxy to find.
        elsewhere = self._mounted_at is not None or (self._settings.public_url is not None and self._port == 0)
        plane = self._current().start(listen=not elsewhere, base_url=self._mounted_at)
        if elsewhere and self._mounted_at is None and not self._users:
            logger.info("No listener is opened: the data plane's app is expected at %s.", plane.base_url)
        return plane
