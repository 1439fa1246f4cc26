"""Listener: an ASGI app on a socket of its own, in a thread of its own."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

from framewire.errors import LifecycleError
from framewire.host.forks import descriptors_stay
from framewire.serve._uvicorn import DrainingServer, bind, uvicorn_config

logger = logging.getLogger(__name__)

_START_SECONDS: Final = 30.0


class _Server(DrainingServer):
    """Leaves signal handlers to the main program, and sets an event once it is up."""

    def __init__(self, config: uvicorn.Config, *, drain_seconds: float) -> None:
        super().__init__(config, drain_seconds=drain_seconds)
        self.up = threading.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class Listener:
    """Serves ``app`` from a daemon thread until :meth:`stop`.

    Args:
        app: The ASGI app.
        host: Address to bind.
        port: Port to bind; 0 for a free one.
        max_connections: See :func:`uvicorn_config`.
        drain_seconds: See :func:`uvicorn_config`.
    """

    def __init__(
        self, app: Any, *, host: str, port: int, max_connections: int = 1024, drain_seconds: float = 2.0
    ) -> None:
        self._sock = bind(host, port)
        self.port: int = self._sock.getsockname()[1]
        config = uvicorn_config(app, drain_seconds=drain_seconds, max_connections=max_connections)
        self._server = _Server(config, drain_seconds=drain_seconds)
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="framewire-data-plane", daemon=True)
        self._drain_seconds = drain_seconds

    def start(self) -> None:
        """Start the thread and wait until it listens.

        Raises:
            LifecycleError: It did not come up.
        """
        self._thread.start()
        if not self._server.up.wait(_START_SECONDS) or self._failed is not None:
            raise LifecycleError("The data plane's listener did not start.") from self._failed

    def _run(self) -> None:
        try:
            with descriptors_stay(self._sock.fileno()):
                self._server.run(sockets=[self._sock])
        except BaseException as exc:
            self._failed = exc
            logger.exception("The data plane's listener ended")
        finally:
            self._sock.close()
            self._server.up.set()

    def stop(self) -> None:
        """Stop accepting, let transfers drain, break those that do not, and wait for the thread."""
        self._server.should_exit = True
        self._thread.join(self._drain_seconds + 5.0)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(5.0)
