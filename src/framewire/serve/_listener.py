"""Listener: an ASGI app on a socket of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import math
import os
import socket
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

from framewire.errors import LifecycleError, SettingError
from framewire.serve._guard import guarded_protocol

logger = logging.getLogger(__name__)

_START_SECONDS: Final = 30.0
_BACKSTOP_SECONDS: Final = 2
"""After the drain every connection is cut; a request that still goes on then (none should) is cancelled so much later."""


class _Config(uvicorn.Config):
    """Leaves the loggers of a program alone that runs uvicorn itself: they are one set for the whole process.

    uvicorn's own way to be quiet would silence the host's servers too. The access log, whose lines would hold tokens, is off
    in :class:`framewire.serve._guard.Guard`.
    """

    def configure_logging(self) -> None:
        logger = logging.getLogger("uvicorn.error")
        if logger.level == logging.NOTSET and logging.getLogger("uvicorn").level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


def uvicorn_config(
    app: Any, *, drain_seconds: float, max_connections: int, lifespan: str = "off", **options: Any
) -> uvicorn.Config:
    """How framewire runs uvicorn: no access log (its lines hold tokens), nothing on stdout, uvloop and httptools if there.

    Args:
        app: The ASGI app.
        drain_seconds: How long running transfers may go on once a stop was asked for; then they break visibly.
        max_connections: Connections at once; one more is answered 503.
        lifespan: ``on`` for apps that have one.
        **options: Further arguments of ``uvicorn.Config``.
    """
    return _Config(
        app,
        http=guarded_protocol(),
        limit_concurrency=max_connections,
        loop="uvloop" if importlib.util.find_spec("uvloop") else "asyncio",
        ws="none",
        lifespan=lifespan,  # type: ignore[arg-type]
        log_config=None,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=math.ceil(drain_seconds) + _BACKSTOP_SECONDS,
        **options,
    )


def bind(host: str, port: int) -> socket.socket:
    """A bound socket for ``host`` and ``port`` (0 for a free one).

    Raises:
        SettingError: The address cannot be bound; said plainly, where uvicorn would end the process.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as exc:
        sock.close()
        raise SettingError(
            f"The data plane cannot listen on {host!r} port {port}: {exc.strerror or exc}.",
            hint="Choose another s2sp_port, or 0 for a free one.",
        ) from None
    return sock


class DrainingServer(uvicorn.Server):
    """uvicorn that breaks what still runs at the end of the drain.

    By itself it cancels requests, which logs a traceback for each, and then waits for readers that do not read.

    Args:
        config: Of :func:`uvicorn_config`.
        drain_seconds: How long running transfers may go on once a stop was asked for.
    """

    def __init__(self, config: uvicorn.Config, *, drain_seconds: float) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, bounded."""
        cut = asyncio.get_running_loop().call_later(self._drain_seconds, self._cut)
        try:
            await super().shutdown(sockets)
        finally:
            cut.cancel()

    def _cut(self) -> None:
        # An abort never sends what is still to come: the client sees fewer bytes than the Content-Length said.
        for connection in list(self.server_state.connections):
            connection.transport.abort()


class _Server(DrainingServer):
    """Without signal handlers, which belong to the main program, and with a sign that it is up."""

    def __init__(self, config: uvicorn.Config, *, drain_seconds: float) -> None:
        super().__init__(config, drain_seconds=drain_seconds)
        self.up = threading.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


_LISTENING: Final[weakref.WeakSet[socket.socket]] = weakref.WeakSet()


def _forget_all() -> None:
    """In a forked child: nobody accepts there, but an inherited socket would keep the port open after its parent's end."""
    null = os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    for sock in list(_LISTENING):
        if sock.fileno() >= 0:
            # Not sock.close(): an event loop holds on to the descriptor's number, and might close it again once it is reused.
            os.dup2(null, sock.fileno(), inheritable=False)
    os.close(null)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


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
        _LISTENING.add(self._sock)
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
