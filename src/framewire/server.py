"""S2SPServer: an MCP server whose tools return and take tables past the model."""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import anyio
import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.extension import Extension
from mcp.types import Icon, ToolAnnotations
from mcp.types import Tool as ListedTool

from framewire import wire
from framewire.errors import SettingError
from framewire.host.addresses import listener_url, warn_unreachable
from framewire.host.forks import descriptors_stay, signals_stay
from framewire.plane import DataPlane
from framewire.serve import bind, serve_both_planes
from framewire.settings import Settings
from framewire.tools import (
    CONSUMER_TEACHING,
    RESOURCE_TEACHING,
    PlaneKeeper,
    Registered,
    StrictArguments,
    argument_names,
    consumer_tool,
    describe,
    resource_tool,
    signals_end_stdin,
)

if TYPE_CHECKING:
    from framewire.client import PeerPolicy

__all__ = ["S2SPServer"]

F = TypeVar("F", bound=Callable[..., Any])
Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


class S2SPServer(MCPServer[Any]):
    """An ``MCPServer`` with two more decorators and a data plane.

    Everything else is the SDK's: ``tool``, ``resource``, ``prompt``, ``custom_route``, the command ``mcp run``.

    Args:
        name: The server's name.
        s2sp_port: Port of the data plane's own listener; 0 for a free one. Under ``run("streamable-http")`` both planes
            share that call's port.
        s2sp_host: Address that this listener binds.
        cache_ttl: Life of a handle, in seconds; ``FRAMEWIRE_TTL_SECONDS`` (600) when None.
        public_url: Base of advertised URLs, for a server behind a proxy or in a container. With it and without
            ``s2sp_port`` no listener is opened: mount :attr:`data_plane`'s ``app`` at that URL.
        settings: Read from the environment when None.
        policy: Which peers consumer tools may fetch from; from the settings when None.
        lifespan: As for ``MCPServer``; the data plane runs around it.
        extensions: As for ``MCPServer``.
        **options: Every other keyword of ``MCPServer``.

    Attributes:
        s2sp_settings: The settings in force.

    Raises:
        SettingError: An argument or an environment variable is out of range.
    """

    def __init__(
        self,
        name: str | None = None,
        s2sp_port: int = 0,
        s2sp_host: str = "127.0.0.1",
        cache_ttl: float | None = None,
        *,
        public_url: str | None = None,
        settings: Settings | None = None,
        policy: PeerPolicy | None = None,
        lifespan: Lifespan | None = None,
        extensions: Sequence[Extension] = (),
        **options: Any,
    ) -> None:
        self.s2sp_settings = _settings(settings, s2sp_port, cache_ttl, public_url)
        self._policy = policy
        self._s2sp_host, self._s2sp_port = s2sp_host, s2sp_port
        self._keeper = PlaneKeeper(self.s2sp_settings, host=s2sp_host, port=s2sp_port)
        self._strict = StrictArguments()
        super().__init__(name, lifespan=self._around(lifespan), extensions=[self._strict, *extensions], **options)

    # --- the data plane -----------------------------------------------------------------------------------------------

    @property
    def mcp(self) -> S2SPServer:
        """This server; the reference's servers embed theirs here."""
        return self

    @property
    def data_plane(self) -> DataPlane:
        """The data plane, started or not. A server that ran and stopped has a new one."""
        return self._keeper.plane

    @property
    def s2sp_endpoint(self) -> str:
        """Base of advertised URLs, without a trailing slash.

        Raises:
            LifecycleError: The data plane is not running.
        """
        return self._keeper.plane.base_url

    async def start(self) -> None:
        """Start the data plane without the MCP server. Each call needs one :meth:`stop`."""
        await anyio.to_thread.run_sync(self._keeper.acquire)

    async def stop(self) -> None:
        """Stop the data plane, unless the MCP server is running too."""
        await anyio.to_thread.run_sync(self._keeper.release)

    @asynccontextmanager
    async def _running(self, *, start: bool = True) -> AsyncIterator[None]:
        await anyio.to_thread.run_sync(functools.partial(self._keeper.acquire, start=start))
        try:
            yield
        finally:
            # Tools' prints are flushed while the SDK still redirects them to stderr: at exit they would go to the client.
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._keeper.release)

    def _publishes(self) -> bool:
        return any(tool.publishes for tool in self._strict.tools_by_name.values())

    def _around(self, inner: Lifespan | None) -> Lifespan:
        @asynccontextmanager
        async def lifespan(server: Any) -> AsyncIterator[Any]:
            # A server of consumer tools alone needs no listener; a publish would start one.
            async with self._running(start=self._publishes()):
                if inner is None:
                    yield {}
                else:
                    async with inner(server) as state:
                        yield state

        return lifespan

    # --- decorators ---------------------------------------------------------------------------------------------------

    @overload
    def sd_resource_tool(self, name: F, /) -> F: ...
    @overload
    def sd_resource_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        title: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        abstract_limit: int = wire.ABSTRACT_LIMIT,
        nan_is_null: bool = True,
    ) -> Callable[[F], F]: ...
    def sd_resource_tool(
        self,
        name: Any = None,
        description: str | None = None,
        *,
        abstract_limit: int = wire.ABSTRACT_LIMIT,
        nan_is_null: bool = True,
        **options: Any,
    ) -> Any:
        """Register a function that returns a table. The tool gains ``abstract_domains`` and ``mode``.

        The function, sync or async, returns anything that :func:`framewire.to_table` takes. Its own parameters,
        defaults, documentation and ``Context`` work as in ``MCPServer.tool``. It may return
        ``CallToolResult(is_error=True)``.

        Args:
            name: The tool's name; the function's by default.
            description: What the tool does; the function's documentation by default. How to use the added parameters is
                appended.
            abstract_limit: Rows that an abstract shows, at most; the body is always whole.
            nan_is_null: As in :func:`framewire.to_table`: whether pandas' NaN is null.
            **options: ``title``, ``annotations``, ``icons``, ``meta`` of the SDK's ``Tool``.

        Returns:
            A decorator that returns the function itself; works with and without parentheses.

        Raises:
            SignatureError: The function cannot become a tool.
            SettingError: ``abstract_limit`` is not a whole number from 0 up.
        """
        if callable(name):
            return self.sd_resource_tool()(name)
        if type(abstract_limit) is not int or abstract_limit < 0:
            raise SettingError(f"abstract_limit is {abstract_limit!r}.", hint="It takes a number of rows, 0 or more.")

        def decorator(fn: F) -> F:
            tool = name or _name_of(fn)
            wrapper = resource_tool(
                fn, name=tool, abstract_limit=abstract_limit, nan_is_null=nan_is_null, plane=self._keeper.started
            )
            text = describe(description, wrapper.__doc__, RESOURCE_TEACHING)
            self._register(wrapper, Registered(argument_names(wrapper, tool), publishes=True), tool, text, options)
            return fn

        return decorator

    sd_tool = s2sp_tool = s2sp_resource_tool = sd_resource_tool

    @overload
    def sd_consumer_tool(self, name: F, /) -> F: ...
    @overload
    def sd_consumer_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        title: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[F], F]: ...
    def sd_consumer_tool(self, name: Any = None, description: str | None = None, **options: Any) -> Any:
        """Register a function that takes a frame. The tool gains the parameters that lead to it.

        Those are ``abstract_data``, ``resource_url``, ``body_data``, ``column_mapping`` and ``row_ids``. The frame
        parameter is the one annotated with a frame (``pl.DataFrame``, ``pl.LazyFrame``, ``pa.Table``,
        ``pa.RecordBatchReader``, ``pd.DataFrame`` or ``list[dict]``), else the one called ``rows``, else the first
        without annotation, which take a ``pl.DataFrame``; every other parameter stays a parameter of the tool. What
        the function returns is converted as the SDK does; a table becomes its rows, up to 1 MiB.

        Args:
            name: The tool's name; the function's by default.
            description: As for :meth:`sd_resource_tool`.
            **options: ``title``, ``annotations``, ``icons``, ``meta`` of the SDK's ``Tool``.

        Returns:
            A decorator that returns the function itself; works with and without parentheses.

        Raises:
            SignatureError: The function cannot become a tool, or it is not clear which parameter takes the frame.
        """
        if callable(name):
            return self.sd_consumer_tool()(name)

        def decorator(fn: F) -> F:
            tool = name or _name_of(fn)
            wrapper, schema = consumer_tool(fn, name=tool, settings=self.s2sp_settings, policy=self._policy)
            text = describe(description, wrapper.__doc__, CONSUMER_TEACHING)
            facts = Registered(argument_names(wrapper, tool), publishes=False, output_schema=schema)
            self._register(wrapper, facts, tool, text, options)
            return fn

        return decorator

    s2sp_consumer_tool = sd_consumer_tool

    def _register(
        self, wrapper: Callable[..., Any], facts: Registered, name: str, description: str, options: dict[str, Any]
    ) -> None:
        self.add_tool(wrapper, name=name, description=description, structured_output=False, **options)
        # As in the SDK, the first tool of a name stays.
        self._strict.tools_by_name.setdefault(name, facts)

    def remove_tool(self, name: str) -> None:
        """As in the SDK."""
        super().remove_tool(name)
        self._strict.tools_by_name.pop(name, None)

    async def list_tools(self) -> list[ListedTool]:
        """As in the SDK, with the output schemas of consumer tools (framewire converts their results itself)."""
        listed = await super().list_tools()
        schemas = {name: tool.output_schema for name, tool in self._strict.tools_by_name.items()}
        return [t.model_copy(update={"output_schema": schemas[t.name]}) if schemas.get(t.name) else t for t in listed]

    # --- transports ---------------------------------------------------------------------------------------------------

    def run(self, transport: Literal["stdio", "sse", "streamable-http"] = "stdio", **options: Any) -> None:
        """Run until stdin ends (stdio) or a signal arrives. Only MCP messages go to stdout.

        Args:
            transport: ``streamable-http`` serves MCP at ``/mcp`` and the data plane at ``/s2sp/`` on one port.
            **options: ``host``, ``port`` (0 for a free one) and the other keywords of ``MCPServer.run``.

        Raises:
            SettingError: The address cannot be bound.
        """
        if transport != "streamable-http":
            with signals_stay():
                super().run(transport, **options)
            return
        uvloop = importlib.util.find_spec("uvloop") is not None
        with signals_stay(), suppress(KeyboardInterrupt):  # uvicorn has shut down by then, and raises the signal again
            anyio.run(
                functools.partial(self.run_streamable_http_async, **options), backend_options={"use_uvloop": uvloop}
            )

    async def run_streamable_http_async(self, *, host: str = "127.0.0.1", port: int = 8000, **options: Any) -> None:
        """Serve MCP and the data plane on one port, until cancelled or signalled.

        Args:
            host: Address to bind.
            port: Port to bind; 0 for a free one.
            **options: Keywords of ``MCPServer.streamable_http_app``.

        Raises:
            SettingError: The address cannot be bound.
        """
        app = self.streamable_http_app(host=host, **options)
        path = options.get("streamable_http_path", "/mcp")
        sock = bind(host, port)
        bound = sock.getsockname()[1]
        try:
            with self._keeper.mounted(host, bound), descriptors_stay(sock.fileno()):
                await serve_both_planes(
                    app,
                    self._keeper.app,
                    sock,
                    drain_seconds=self.s2sp_settings.drain_seconds,
                    max_connections=self.s2sp_settings.max_connections,
                    announcement=f"MCP and data plane of {self.name!r} at {listener_url(host, bound)}, MCP path {path}",
                )
        finally:
            sock.close()

    async def run_stdio_async(self) -> None:
        """As in the SDK; SIGINT and SIGTERM end it as the end of stdin does."""
        with signals_end_stdin(self.s2sp_settings.drain_seconds):
            # Started before stdin is read: the SDK would tell of a taken port only once a line has come.
            async with self._running(start=self._publishes()):
                await super().run_stdio_async()

    async def run_sse_async(self, *, host: str = "127.0.0.1", **options: Any) -> None:
        """As in the SDK; the data plane keeps its own listener, and outlives each connection."""
        warn_unreachable(host, self.s2sp_settings.public_url or listener_url(self._s2sp_host, self._s2sp_port))
        async with self._running():
            await super().run_sse_async(host=host, **options)


def _settings(settings: Settings | None, port: int, ttl: float | None, public_url: str | None) -> Settings:
    """Return the settings in force; the constructor's arguments are checked as the environment's are."""
    if not 0 <= port <= 65535:
        raise SettingError(f"s2sp_port is {port!r}.", hint="It takes a port number, or 0 for a free one.")
    if ttl is not None and not 0 < ttl < math.inf:
        raise SettingError(f"cache_ttl is {ttl!r}.", hint="It takes a positive number of seconds.")
    url = Settings.from_env({"FRAMEWIRE_PUBLIC_URL": public_url or ""}).public_url
    return (settings or Settings.from_env()).replace(public_url=url, ttl_seconds=ttl)


def _name_of(fn: Callable[..., Any]) -> str:
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__name__", type(inner).__name__))
