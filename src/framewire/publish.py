"""publish: a normalised table -> split -> store -> Handle."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from framewire import wire
from framewire.errors import SettingError
from framewire.handle import Handle
from framewire.split import add_row_id
from framewire.store import Body, BodyStore


def publish_table(
    table: pa.Table,
    store: BodyStore,
    *,
    base_url: str,
    ttl_seconds: float,
    max_uses: int | None = None,
    tool: str = "",
    confirm: Callable[[], None] | None = None,
) -> Handle:
    """Store ``table`` and mint a handle for it. Blocks: the table is written once, into one buffer.

    Args:
        table: What ``to_table`` returned, without ``_row_id``.
        store: Where the body is kept.
        base_url: What the advertised URL starts with, without a trailing slash.
        ttl_seconds: Life of the handle, in seconds.
        max_uses: Acknowledged deliveries allowed; any number until expiry when None.
        tool: Name of the tool to call again once the handle has ended.
        confirm: Called once the table is written, before there is a handle: raises where it must not be published after all.

    Raises:
        NoRoomError: The store cannot hold it; nothing was kept.
        ColumnNameError: The table has a column ``_row_id``.
        SettingError: ``ttl_seconds`` or ``max_uses`` is out of range.
    """
    if not 0 < ttl_seconds < math.inf:
        raise SettingError(f"ttl_seconds is {ttl_seconds!r}.", hint="It takes a positive number of seconds.")
    if max_uses is not None and (type(max_uses) is not int or max_uses < 1):
        raise SettingError(f"max_uses is {max_uses!r}.", hint="It takes 1 or more, or None for any number.")
    numbered = add_row_id(table)
    with store.reserve(int(numbered.get_total_buffer_size()), spill=True) as reservation:
        body = Body.of(numbered, tool=tool, place=reservation.place)
        if confirm is not None:
            try:
                confirm()
            except BaseException:
                body.kept.close()
                raise
        expires_at = datetime.now(UTC) + timedelta(seconds=ttl_seconds)
        token = store.put(body, reservation, ttl_seconds=ttl_seconds, max_uses=max_uses)
    return Handle(
        resource_url=f"{base_url}{wire.DATA_PREFIX}{token}",
        total_rows=body.total_rows,
        schema=describe_schema(numbered.schema),
        nbytes=body.nbytes,
        expires_at=expires_at,
        max_uses=max_uses,
    )


def describe_schema(schema: pa.Schema) -> dict[str, str]:
    """Column name to ``str(pa.DataType)``, in column order."""
    return {field.name: str(field.type) for field in schema}
