"""DataPlane: a body store and the listener that serves it."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from urllib.parse import urlsplit

import anyio.to_thread

from framewire import wire
from framewire.errors import ArgumentError, LifecycleError
from framewire.handle import Handle
from framewire.host import memfd, registry
from framewire.host.addresses import listener_url, warn_unreachable
from framewire.publish import PreparedTable, publish_table
from framewire.serve import DataApp, HostPolicy, Listener
from framewire.settings import Settings
from framewire.store import BodyStore, Disk, Heap, MemoryStore, SealedMemory, Stats
from framewire.table import to_table
from framewire.typing import Tabular


class DataPlane:
    """Publishes tables and serves them over HTTP.

    Works under ``with`` and ``async with``. Every method is thread-safe.

    Args:
        settings: Read from the environment when not given.
        host: Address that the plane's own listener binds.
        port: Its port; 0 for a free one.
        public_url: Base of advertised URLs, in place of the listener's own address; wins over ``settings``.
        ttl_seconds: Default life of a handle, in seconds; wins over ``settings``.
        store: Where bodies live; a :class:`MemoryStore` within the memory budget by default.

    Attributes:
        app: The pure ASGI app behind the listener, for mounting in another server (then ``start(listen=False)``).
        settings: The settings in force.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        public_url: str | None = None,
        ttl_seconds: float | None = None,
        store: BodyStore | None = None,
    ) -> None:
        self.settings = (settings or Settings.from_env()).replace(public_url=public_url, ttl_seconds=ttl_seconds)
        self._host, self._port = host, port
        self._store: BodyStore = store or _default_store(self.settings)
        names = list(self.settings.allowed_hosts)
        if self.settings.public_url:
            names.append(urlsplit(self.settings.public_url).hostname or "")
        self.app = DataApp(self._store, HostPolicy(host, names), max_selection_bytes=self.settings.max_selection_bytes)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._listener: Listener | None = None
        self._base_url: str | None = None
        self._claim: registry.Claim | None = None
        self._stopped = False
        self._wake = threading.Event()
        self._sweeper: threading.Thread | None = None

    # --- life ---------------------------------------------------------------------------------------------------------

    def start(self, *, listen: bool = True, base_url: str | None = None) -> DataPlane:
        """Start once; later calls do nothing.

        Args:
            listen: Open the plane's own listener. False when ``app`` is mounted in another server.
            base_url: URL of that other server; ``public_url`` wins over it.

        Raises:
            SettingError: The address cannot be bound.
            LifecycleError: The plane was stopped, was made before a fork, or another process publishes under its URL.
        """
        self._check_process()
        with self._lock:
            self._check_alive()
            self._take_address(base_url, listen=listen)
            if self._sweeper is None:
                # The thread holds only the store, so that an unreferenced plane can be garbage-collected, which ends the thread.
                self._sweeper = threading.Thread(
                    target=_sweep,
                    args=(self._store, self._wake, weakref.ref(self)),
                    name="framewire-sweeper",
                    daemon=True,
                )
                self._sweeper.start()
            if listen and self._listener is None:
                self._listener = Listener(
                    self.app,
                    host=self._host,
                    port=self._port,
                    max_connections=self.settings.max_connections,
                    drain_seconds=self.settings.drain_seconds,
                )
                self._listener.start()
                base_url = listener_url(self._host, self._listener.port)
                if not self.settings.public_url:
                    warn_unreachable(self._host, base_url)
            if base_url and self.app.registration is None:
                self.app.registration = registry.register(base_url, folder=self.settings.runtime_dir)
            if self.settings.public_url or base_url:
                self._base_url = self.settings.public_url or base_url
        return self

    def stop(self) -> None:
        """Stop the listener (running transfers drain for a moment, then break visibly) and drop every body."""
        if self._pid != os.getpid():
            return  # A forked child leaves the plane's context: the plane belongs to its parent, and goes on there.
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            claim, self._claim = self._claim, None
            listener, self._listener = self._listener, None
            registration, self.app.registration = self.app.registration, None
        if registration is not None:
            registry.unregister(registration, folder=self.settings.runtime_dir)
        if listener is not None:
            listener.stop()
        self._store.close()
        self._wake.set()
        if claim is not None:
            claim.release()

    def __enter__(self) -> DataPlane:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> DataPlane:
        return await anyio.to_thread.run_sync(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await anyio.to_thread.run_sync(self.stop)

    @property
    def base_url(self) -> str:
        """Base of advertised URLs, without a trailing slash.

        Raises:
            LifecycleError: The plane was not started.
        """
        if self._base_url is None:
            raise LifecycleError("The data plane is not running.", hint="Start it, or use it under 'with'.")
        return self._base_url

    # --- bodies -------------------------------------------------------------------------------------------------------

    def publish(
        self,
        data: Tabular | PreparedTable,
        *,
        ttl_seconds: float | None = None,
        max_uses: int | None = None,
        tool: str = "",
        nan_is_null: bool = True,
    ) -> Handle:
        """Convert ``data`` and publish it. Blocks while it does; see :meth:`publish_async`.

        Args:
            data: Anything tabular (see :func:`framewire.to_table`), which is not changed; or a prepared table, which is stored
                as it is.
            ttl_seconds: Life of the handle; the plane's default when None.
            max_uses: Acknowledged deliveries allowed; any number until expiry when None. It counts deliveries and is not an
                access control.
            tool: Name of the tool to call again once the handle has ended.
            nan_is_null: As in :func:`framewire.to_table`.

        Returns:
            The handle, to pass to a consumer.

        Raises:
            PublishError: ``data`` has no exact form, or the store cannot hold it. Nothing is left of it then.
            SettingError: ``ttl_seconds`` or ``max_uses`` is out of range.
            LifecycleError: The plane is not running.
        """
        prepared = (
            data if isinstance(data, PreparedTable) else PreparedTable.of(to_table(data, nan_is_null=nan_is_null))
        )
        self._check_alive()
        handle = publish_table(
            prepared,
            self._store,
            base_url=self.base_url,
            ttl_seconds=self.settings.ttl_seconds if ttl_seconds is None else ttl_seconds,
            max_uses=max_uses,
            tool=tool,
        )
        self._wake.set()
        return handle

    async def publish_async(
        self,
        data: Tabular,
        *,
        ttl_seconds: float | None = None,
        max_uses: int | None = None,
        tool: str = "",
        nan_is_null: bool = True,
    ) -> Handle:
        """:meth:`publish` off the event loop."""

        def publish() -> Handle:
            return self.publish(data, ttl_seconds=ttl_seconds, max_uses=max_uses, tool=tool, nan_is_null=nan_is_null)

        return await anyio.to_thread.run_sync(publish)

    def revoke(self, handle: Handle | str) -> None:
        """End a handle now; running transfers finish.

        Args:
            handle: The handle, or its ``resource_url``.

        Raises:
            InvalidTokenError: It is not a live handle of this plane.
            LifecycleError: The plane is not running in this process.
        """
        self._check_process()
        url = handle.resource_url if isinstance(handle, Handle) else handle
        _, prefix, token = url.partition(wire.DATA_PREFIX)
        if not prefix:
            raise ArgumentError("This is not a resource_url.", hint="Pass the Handle, or its resource_url.")
        self._store.revoke(token)

    def stats(self) -> Stats:
        """Count what the store holds now.

        Raises:
            LifecycleError: This is a forked child, whose copy of the store does not follow the parent's.
        """
        self._check_process()
        return self._store.stats()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _take_address(self, base_url: str | None, *, listen: bool) -> None:
        """Refuse a second process behind one URL (workers of one app): it would answer 404 to the other's handles.

        A plane with a listener of its own and no public URL needs no claim: the kernel gives a port to one process.
        """
        base = self.settings.public_url or (None if listen else base_url)
        if base is None or self._claim is not None:
            return
        self._claim, holder = registry.claim(base, folder=self.settings.runtime_dir)
        if holder is not None:
            raise LifecycleError(
                f"Another process (pid {holder}) publishes under {base}: this is a second worker of one data plane, or "
                "a second server with the same public URL.",
                hint="Bodies live in one process, so a fetch that reaches the other one would fail. Run one worker "
                "(uvicorn --workers 1), or give each process a FRAMEWIRE_PUBLIC_URL of its own. Without a public URL "
                "each worker opens a listener of its own, and needs neither.",
            )

    def _check_process(self) -> None:
        # Before any lock: in a forked child it may be held by a thread that exists in the parent alone.
        if self._pid != os.getpid():
            raise LifecycleError(
                "This data plane belongs to the parent of a forked process.", hint="Create a DataPlane in each process."
            )

    def _check_alive(self) -> None:
        self._check_process()
        if self._stopped:
            raise LifecycleError("The data plane is stopped.", hint="Create a new DataPlane.")


def _default_store(settings: Settings) -> BodyStore:
    return MemoryStore(
        settings.memory_budget_bytes,
        storage=SealedMemory() if settings.same_host == "auto" and memfd.is_available() else Heap(),
        disk=Disk(settings.spill_dir),
        disk_budget_bytes=settings.disk_budget_bytes,
    )


def _sweep(store: BodyStore, wake: threading.Event, owner: weakref.ref[DataPlane]) -> None:
    """Expire bodies on time, without being asked, for as long as the plane lives."""
    while True:
        plane = owner()
        if plane is None or plane._stopped:
            return
        del plane
        pause = store.sweep()
        wake.wait(min(pause, 60.0) if pause is not None else 60.0)
        wake.clear()
