"""Client: a handle's rows over HTTP, as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar

import httpx
import pyarrow as pa

from framewire.arrow.cast import without_views
from framewire.arrow.expanded import check_expanded
from framewire.arrow.types import any_type, is_view
from framewire.client._cancellation import Cancellation
from framewire.client._job import Job
from framewire.client._options import Options, Transport, refuse_where
from framewire.client._policy import PeerPolicy
from framewire.client._transport import DirectTransport
from framewire.errors import ArgumentError
from framewire.host.threads import FETCHING
from framewire.selection import RowSpec
from framewire.settings import Settings
from framewire.typing import RowIds

__all__ = [
    "DirectTransport",
    "Options",
    "PeerPolicy",
    "fetch",
    "fetch_async",
    "fetch_table",
    "in_thread",
    "refuse_where",
]

T = TypeVar("T")
Types: TypeAlias = Literal["arrow", "views"]


def fetch(
    resource_url: str,
    row_ids: RowIds | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: DirectTransport | httpx.BaseTransport | None = None,
    deadline_seconds: float | None = None,
    types: Types = "arrow",
) -> pa.Table:
    """Fetch rows from a data plane. Blocks; see :func:`fetch_async`.

    Args:
        resource_url: Presigned URL of a resource tool's reply or a :class:`~framewire.Handle`.
        row_ids: Rows, in the order wanted, duplicates kept; every row when None, none for ``[]``.
        columns: Column names in the order wanted; every column when None.
        where: Reserved; refused for now.
        settings: Limits; read from the environment when None.
        policy: Which peers may be called; made from ``settings`` when None.
        transport: A ``DirectTransport`` of your own, or any httpx transport; the latter resolves and connects by itself.
        deadline_seconds: Time for the whole exchange; wins over ``settings``.
        types: ``"arrow"`` gives ``large_string`` and ``large_binary`` where the wire has views: pyarrow and pandas can neither
            filter, sort nor join those. ``"views"`` leaves them as they came, without a copy, for Polars and DuckDB.

    Returns:
        A table whose first column is ``_row_id`` (int64, not null), then the columns asked for. It may be larger than memory that
        is freed soon: its columns are views into one buffer, kept alive by any of them.

    Raises:
        TransferDeniedError: The policy refuses the URL; nothing was sent.
        InvalidTokenError: The handle is unknown, expired or revoked.
        RowOutOfRangeError, UnknownColumnError, SelectionError: The selection does not fit; the offender is named.
        TransferFailedError: The transfer broke off, or what arrived is not what was announced.
        TransferTimeoutError: The deadline passed.
    """
    options = Options.of(settings, policy, transport, deadline_seconds)
    return _fetch_as(options, types, resource_url, row_ids, columns, where)


async def fetch_async(
    resource_url: str,
    row_ids: RowIds | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: Transport | None = None,
    deadline_seconds: float | None = None,
    types: Types = "arrow",
) -> pa.Table:
    """:func:`fetch` without blocking the event loop; ``transport`` may be an async one as well."""
    options = Options.of(settings, policy, transport, deadline_seconds)
    return await in_thread(_fetch_as, options, types, resource_url, row_ids, columns, where)


def _fetch_as(options: Options, types: Types, *arguments: Any) -> pa.Table:
    if types not in ("arrow", "views"):
        raise ArgumentError(f"types is {types!r}.", hint='It takes "arrow" or "views".')
    table = fetch_table(options, *arguments)
    if types == "views":
        return table
    # A thousand views can show the same megabyte, which the limit for the body has not seen. Dictionaries stay what they are.
    views = table.select([i for i, dtype in enumerate(table.schema.types) if any_type(is_view, dtype)])
    check_expanded(views, options.settings.max_body_bytes, stored_bytes=0)
    return without_views(table)


def fetch_table(
    options: Options,
    resource_url: str,
    row_ids: RowIds | RowSpec | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> pa.Table:
    """:func:`fetch` with its keyword arguments in one object, and views as they came."""
    return Job(resource_url, row_ids, columns, where, options).run()


async def in_thread(work: Callable[..., T], options: Options, *args: object) -> T:
    """Run ``work(options, *args)``, which fetches, in a worker thread, under a cancellation of its own.

    A cancelled call returns at once and frees its slot; its thread ends as soon as its socket is shut down.
    """
    options = replace(options, cancellation=Cancellation())
    try:
        return await FETCHING.run(work, options, *args, abandon_on_cancel=True)
    finally:
        options.cancellation.cancel()
