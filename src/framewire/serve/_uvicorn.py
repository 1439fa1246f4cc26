"""How framewire runs uvicorn: quietly, within limits, and with a drain that ends."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import math
import socket
from collections.abc import Iterator
from typing import Any, Final

import uvicorn

from framewire import wire
from framewire.errors import SettingError
from framewire.host.forks import signals_stay
from framewire.serve._guard import guarded_protocol

logger = logging.getLogger(__name__)

_BACKSTOP_SECONDS: Final = 2
"""After the drain every connection is cut; a request that still runs (none should) is cancelled this much later."""


class _Config(uvicorn.Config):
    """Leaves uvicorn's loggers as the program has set them: they are one set for the whole process.

    uvicorn's own options to be quiet would silence the program's other servers too. The access log, whose lines would hold
    tokens, is off in :class:`framewire.serve._guard.Guard`.
    """

    def configure_logging(self) -> None:
        errors = logging.getLogger("uvicorn.error")
        if errors.level == logging.NOTSET and logging.getLogger("uvicorn").level == logging.NOTSET:
            errors.setLevel(logging.WARNING)


def uvicorn_config(
    app: Any, *, drain_seconds: float, max_connections: int, lifespan: str = "off", **options: Any
) -> uvicorn.Config:
    """Configure uvicorn: no access log (its lines hold tokens), nothing on stdout, uvloop and httptools where installed.

    Args:
        app: The ASGI app.
        drain_seconds: How long running transfers may continue after a stop was requested; then they break visibly.
        max_connections: Connections at once; one more is answered 503.
        lifespan: ``on`` for apps that have one.
        **options: Further arguments of ``uvicorn.Config``.
    """
    return _Config(
        app,
        http=guarded_protocol(),
        limit_concurrency=max_connections
        + 1,  # uvicorn counts the connection that it asks about, and refuses at the limit
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
    """Return a socket bound to ``host`` and ``port`` (0 for a free one).

    Raises:
        SettingError: The address cannot be bound. (uvicorn would end the process.)
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
    """uvicorn that aborts the transfers still running at the end of the drain.

    uvicorn itself cancels requests, which logs a traceback for each, and then waits for readers that do not read.

    Args:
        config: Of :func:`uvicorn_config`.
        drain_seconds: See :func:`uvicorn_config`.
    """

    def __init__(self, config: uvicorn.Config, *, drain_seconds: float) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's; forked children keep the handlers of before."""
        with signals_stay(), super().capture_signals():
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down as uvicorn does, within the drain's time."""
        cut = asyncio.get_running_loop().call_later(self._drain_seconds, self._cut)
        try:
            await super().shutdown(sockets)
        finally:
            cut.cancel()

    def _cut(self) -> None:
        # An abort discards the bytes still to be sent: the client sees fewer bytes than the Content-Length said.
        for connection in list(self.server_state.connections):
            connection.transport.abort()


class _AnnouncingServer(DrainingServer):
    """Logs where it is reached once it accepts connections."""

    def __init__(self, config: uvicorn.Config, *, drain_seconds: float, announcement: str) -> None:
        super().__init__(config, drain_seconds=drain_seconds)
        self._announcement = announcement

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            logger.info(self._announcement)


async def serve_both_planes(
    mcp_app: Any,
    data_app: Any,
    sock: socket.socket,
    *,
    drain_seconds: float,
    max_connections: int,
    announcement: str,
) -> None:
    """Serve MCP and a data plane on one socket, until cancelled or signalled.

    Args:
        mcp_app: ASGI app of the control plane; the lifespan is its own.
        data_app: ASGI app of every path under ``/s2sp/``.
        sock: Bound; it stays open.
        drain_seconds: See :func:`uvicorn_config`.
        max_connections: See :func:`uvicorn_config`.
        announcement: Log line for the moment when connections are accepted.
    """

    async def app(scope: Any, receive: Any, send: Any) -> None:
        is_data = scope["type"] == "http" and scope["path"].startswith(wire.PLANE_PREFIX)
        await (data_app if is_data else mcp_app)(scope, receive, send)

    config = uvicorn_config(app, drain_seconds=drain_seconds, max_connections=max_connections, lifespan="on")
    server = _AnnouncingServer(config, drain_seconds=drain_seconds, announcement=announcement)
    await server.serve(sockets=[sock])
