"""publish: a normalised table -> numbered and described -> store -> Handle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from framewire import wire
from framewire.errors import SettingError
from framewire.handle import Handle
from framewire.split import add_row_id
from framewire.store import Body, BodyStore


@dataclass(frozen=True)
class PreparedTable:
    """A table ready to be stored: validated, compacted, numbered and described, each once.

    Attributes:
        table: ``_row_id`` (int64, not null, 0..n-1), then the columns as ``to_table`` returned them.
        schema: Column name to ``str(pa.DataType)``, in column order, ``_row_id`` first.
    """

    table: pa.Table
    schema: Mapping[str, str]

    @classmethod
    def of(cls, table: pa.Table) -> PreparedTable:
        """Number and describe a table that ``to_table`` returned.

        Raises:
            ColumnNameError: The table has a column ``_row_id``.
        """
        numbered = add_row_id(table)
        return cls(numbered, describe_schema(numbered.schema))


def publish_table(
    prepared: PreparedTable,
    store: BodyStore,
    *,
    base_url: str,
    ttl_seconds: float,
    max_uses: int | None = None,
    tool: str = "",
) -> Handle:
    """Store a table and mint a handle for it. Blocks: the table is written once, into one buffer.

    Args:
        prepared: The table.
        store: The store that keeps the body.
        base_url: Base of the advertised URL, without a trailing slash.
        ttl_seconds: Life of the handle, in seconds.
        max_uses: Acknowledged deliveries allowed; any number until expiry when None.
        tool: Name of the tool to call again once the handle has ended.

    Raises:
        NoRoomError: The store cannot hold it; nothing was kept.
        SettingError: ``ttl_seconds`` or ``max_uses`` is out of range.
    """
    if not 0 < ttl_seconds < math.inf:
        raise SettingError(f"ttl_seconds is {ttl_seconds!r}.", hint="It takes a positive number of seconds.")
    if max_uses is not None and (type(max_uses) is not int or max_uses < 1):
        raise SettingError(f"max_uses is {max_uses!r}.", hint="It takes 1 or more, or None for any number.")
    with store.reserve(int(prepared.table.get_total_buffer_size()), spill=True) as reservation:
        body = Body.of(prepared.table, tool=tool, storage=reservation.storage)
        expires_at = datetime.now(UTC) + timedelta(seconds=ttl_seconds)
        token = store.put(body, reservation, ttl_seconds=ttl_seconds, max_uses=max_uses)
    return Handle(
        resource_url=f"{base_url}{wire.DATA_PREFIX}{token}",
        total_rows=body.total_rows,
        schema=prepared.schema,
        nbytes=body.nbytes,
        expires_at=expires_at,
        max_uses=max_uses,
    )


def describe_schema(schema: pa.Schema) -> dict[str, str]:
    """Column name to ``str(pa.DataType)``, in column order."""
    return {field.name: str(field.type) for field in schema}
