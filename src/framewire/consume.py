"""resolve: a handle (or an inline body) and the agent's rows -> one frame, joined on ``_row_id``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio.to_thread
import pyarrow as pa

from framewire.client import PeerPolicy, fetch, fetch_async
from framewire.errors import ArgumentError, SelectionError
from framewire.frame import Form, to_form
from framewire.inline import InlineBody, parse_body_data, pick, table_of_rows
from framewire.join import AgentRows, join, parse_abstract, parse_mapping, rename
from framewire.selection import RowSpec, parse_row_ids
from framewire.settings import Settings
from framewire.typing import RowIds

if TYPE_CHECKING:
    import httpx
    import polars as pl

_NOTHING: Final = "Pass the resource_url of a resource tool's reply, or its body as body_data."


class _Request:
    """The arguments of one call, read and checked before anything is fetched."""

    def __init__(
        self,
        abstract_data: str | Sequence[Any] | Mapping[str, Any],
        resource_url: str,
        body_data: str | Sequence[Any] | Mapping[str, Any],
        column_mapping: str | Mapping[str, str],
        row_ids: RowIds | None,
        where: str | None,
        settings: Settings,
    ) -> None:
        self.agent: AgentRows | None = parse_abstract(abstract_data)
        self.mapping = parse_mapping(column_mapping)
        self.url = resource_url.strip()
        self.body_data = body_data.strip() if isinstance(body_data, str) else body_data
        self.settings = settings
        if where:
            raise SelectionError("'where' is not available yet.", hint="Select with row_ids.")
        if self.url and self.body_data:
            raise ArgumentError(
                "Both resource_url and body_data were passed.",
                hint="Pass resource_url in async mode, body_data in sync mode.",
            )
        # An empty text is how models write "not given"; an empty list is no rows.
        given = row_ids is not None and not (isinstance(row_ids, str) and not row_ids.strip())
        self.rows: RowSpec | None = parse_row_ids(row_ids) if given and row_ids is not None else None
        if self.agent is None and not self.url and self.body_data in ("", None):
            raise ArgumentError("There is no data to work on.", hint=_NOTHING)

    @property
    def wanted(self) -> RowSpec | None:
        """``row_ids`` selects; otherwise the agent's ids; otherwise every row."""
        if self.rows is not None or self.agent is None:
            return self.rows
        return parse_row_ids(self.agent.ids)

    def inline(self) -> InlineBody:
        """The body that came with the call; without one, the agent's rows are all there is."""
        if self.body_data in ("", None):
            assert self.agent is not None
            return InlineBody(pick(table_of_rows([{"_row_id": i} for i in self.agent.ids]), self.wanted))
        body = parse_body_data(self.body_data, self.settings)
        return InlineBody(pick(body.table, self.wanted), body.declared)

    def finish(self, body: InlineBody) -> pa.Table:
        """Join and rename."""
        selected: Literal["agent", "rows"] = "rows" if self.rows is not None or self.agent is None else "agent"
        return rename(join(body.table, self.agent, selected=selected, declared=body.declared), self.mapping)


def resolve_table(
    abstract_data: str | Sequence[Any] | Mapping[str, Any] = "",
    resource_url: str = "",
    body_data: str | Sequence[Any] | Mapping[str, Any] = "",
    column_mapping: str | Mapping[str, str] = "",
    row_ids: RowIds | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: httpx.BaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pa.Table:
    """:func:`resolve` as a ``pa.Table``, before it is put into a frame."""
    request = _Request(
        abstract_data, resource_url, body_data, column_mapping, row_ids, where, settings or Settings.from_env()
    )
    if not request.url:
        return request.finish(request.inline())
    body = fetch(
        request.url,
        request.wanted,
        settings=request.settings,
        policy=policy,
        transport=transport,
        deadline_seconds=deadline_seconds,
    )
    return request.finish(InlineBody(body))


async def resolve_table_async(
    abstract_data: str | Sequence[Any] | Mapping[str, Any] = "",
    resource_url: str = "",
    body_data: str | Sequence[Any] | Mapping[str, Any] = "",
    column_mapping: str | Mapping[str, str] = "",
    row_ids: RowIds | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pa.Table:
    """:func:`resolve_table` without blocking the event loop."""
    chosen = settings or Settings.from_env()

    def prepare() -> _Request:
        return _Request(abstract_data, resource_url, body_data, column_mapping, row_ids, where, chosen)

    request = await anyio.to_thread.run_sync(prepare)
    if not request.url:
        return await anyio.to_thread.run_sync(lambda: request.finish(request.inline()))
    body = await fetch_async(
        request.url,
        request.wanted,
        settings=chosen,
        policy=policy,
        transport=transport,
        deadline_seconds=deadline_seconds,
    )
    return await anyio.to_thread.run_sync(request.finish, InlineBody(body))


def resolve(
    abstract_data: str | Sequence[Any] | Mapping[str, Any] = "",
    resource_url: str = "",
    body_data: str | Sequence[Any] | Mapping[str, Any] = "",
    column_mapping: str | Mapping[str, str] = "",
    row_ids: RowIds | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: httpx.BaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pl.DataFrame:
    """What a consumer tool's function receives, without MCP. Blocks; see :func:`resolve_async`.

    ``row_ids`` selects and gives the order; otherwise the ids of ``abstract_data`` do; with neither, every row. With both,
    ``abstract_data`` only adds its columns (left join). A column of the resource always has the resource's exact value and type.

    Args:
        abstract_data: The agent's rows, each an object with ``_row_id``: JSON text or a list. ``"[]"`` is no rows.
        resource_url: Presigned URL of the body (async mode).
        body_data: The body itself (sync mode): a JSON array of rows, a whole sync reply, or an Arrow stream as a ``data:`` URL.
        column_mapping: Old column name to new, applied to both sides: JSON text or a mapping.
        row_ids: Rows, in the order wanted, duplicates kept: integers and inclusive ranges (``[0, "5-99"]``).
        where: Reserved; refused for now.
        settings: As in :func:`framewire.fetch`, like the next three.
        policy: Which peers may be called.
        transport: An httpx transport in place of framewire's own.
        deadline_seconds: Time for the whole exchange.

    Returns:
        ``_row_id`` (Int64), the resource's columns in their order, then the columns that the agent added.

    Raises:
        ArgumentError: An argument is malformed, or names a row that was not selected.
        S2SPError: Anything that :func:`framewire.fetch` raises.
    """
    table = resolve_table(
        abstract_data,
        resource_url,
        body_data,
        column_mapping,
        row_ids,
        where,
        settings=settings,
        policy=policy,
        transport=transport,
        deadline_seconds=deadline_seconds,
    )
    frame: pl.DataFrame = to_form(table, Form.POLARS_FRAME)
    return frame


async def resolve_async(
    abstract_data: str | Sequence[Any] | Mapping[str, Any] = "",
    resource_url: str = "",
    body_data: str | Sequence[Any] | Mapping[str, Any] = "",
    column_mapping: str | Mapping[str, str] = "",
    row_ids: RowIds | None = None,
    where: str | None = None,
    *,
    settings: Settings | None = None,
    policy: PeerPolicy | None = None,
    transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pl.DataFrame:
    """:func:`resolve` without blocking the event loop."""
    table = await resolve_table_async(
        abstract_data,
        resource_url,
        body_data,
        column_mapping,
        row_ids,
        where,
        settings=settings,
        policy=policy,
        transport=transport,
        deadline_seconds=deadline_seconds,
    )
    frame: pl.DataFrame = await anyio.to_thread.run_sync(to_form, table, Form.POLARS_FRAME)
    return frame
