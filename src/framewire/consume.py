"""resolve: a handle (or an inline body) and the agent's rows -> one frame, joined on ``_row_id``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from framewire.client import DirectTransport, Options, PeerPolicy, fetch_table, in_thread, refuse_where
from framewire.errors import ArgumentError
from framewire.frame import Form, to_form
from framewire.inline import InlineBody, parse_body_data, pick, table_of_rows
from framewire.join import AgentRows, join, parse_abstract, parse_mapping, rename
from framewire.selection import RowSpec, parse_row_ids
from framewire.settings import Settings
from framewire.typing import RowIds

if TYPE_CHECKING:
    import httpx
    import polars as pl

_HINT: Final = "Pass the resource_url of a resource tool's reply, or its body as body_data."


@dataclass(frozen=True)
class Sources:
    """The arguments of a consumer tool that lead to its frame; as in :func:`resolve`."""

    abstract_data: str | Sequence[Any] | Mapping[str, Any] = ""
    resource_url: str = ""
    body_data: str | Sequence[Any] | Mapping[str, Any] = ""
    column_mapping: str | Mapping[str, str] = ""
    row_ids: RowIds | None = None
    where: str | None = None


def resolve_form(options: Options, sources: Sources, form: Form) -> Any:
    """:func:`resolve` in any form. Blocks: parses, fetches, joins and converts."""
    table = _resolve(options, sources)
    options.cancellation.check()
    return to_form(table, form)


async def resolve_form_async(options: Options, sources: Sources, form: Form) -> Any:
    """:func:`resolve_form` in one worker thread."""
    return await in_thread(resolve_form, options, sources, form)


def _resolve(options: Options, sources: Sources) -> pa.Table:
    agent = parse_abstract(sources.abstract_data)
    mapping = parse_mapping(sources.column_mapping)
    refuse_where(sources.where)
    url = sources.resource_url.strip()
    body_data = sources.body_data.strip() if isinstance(sources.body_data, str) else sources.body_data
    if url and body_data:
        raise ArgumentError(
            "Both resource_url and body_data were passed.",
            hint="Pass resource_url in async mode, body_data in sync mode.",
        )
    rows = _parse_rows(sources.row_ids)
    selects = rows is not None or agent is None
    # row_ids selects; otherwise the agent's ids do; with neither, every row.
    wanted = rows if selects or agent is None else parse_row_ids(agent.ids)
    body = InlineBody(fetch_table(options, url, wanted)) if url else _inline(options, body_data, agent, wanted)
    joined = join(body.table, agent, selected="rows" if selects else "agent", declared=body.declared)
    return rename(joined, mapping)


def _parse_rows(row_ids: RowIds | None) -> RowSpec | None:
    # An empty text is how models write "not given"; an empty list is no rows.
    if row_ids is None or (isinstance(row_ids, str) and not row_ids.strip()):
        return None
    return parse_row_ids(row_ids)


def _inline(options: Options, body_data: Any, agent: AgentRows | None, wanted: RowSpec | None) -> InlineBody:
    """The body that came with the call; without one, the agent's rows are all there is."""
    if body_data not in ("", None):
        body = parse_body_data(body_data, options.settings)
        return InlineBody(pick(body.table, wanted), body.declared)
    if agent is None:
        raise ArgumentError("There is no data to work on.", hint=_HINT)
    return InlineBody(pick(table_of_rows([{"_row_id": i} for i in agent.ids]), wanted))


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
    transport: DirectTransport | httpx.BaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pl.DataFrame:
    """Fetch and join what a consumer tool's function receives, without MCP. Blocks; see :func:`resolve_async`.

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
        transport: Replaces framewire's own.
        deadline_seconds: Time for the whole exchange.

    Returns:
        ``_row_id`` (Int64), the resource's columns in their order, then the columns that the agent added.

    Raises:
        ArgumentError: An argument is malformed, or names a row that was not selected.
        S2SPError: Anything that :func:`framewire.fetch` raises.
    """
    options = Options.of(settings, policy, transport, deadline_seconds)
    sources = Sources(abstract_data, resource_url, body_data, column_mapping, row_ids, where)
    frame: pl.DataFrame = resolve_form(options, sources, Form.POLARS_FRAME)
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
    transport: DirectTransport | httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
    deadline_seconds: float | None = None,
) -> pl.DataFrame:
    """:func:`resolve` without blocking the event loop."""
    options = Options.of(settings, policy, transport, deadline_seconds)
    sources = Sources(abstract_data, resource_url, body_data, column_mapping, row_ids, where)
    frame: pl.DataFrame = await resolve_form_async(options, sources, Form.POLARS_FRAME)
    return frame
