"""The three replies of a resource tool: plain rows, abstract with a handle (async), abstract with its body (sync).

Each is one JSON object, the same in the structured part and in the single text block, so that a client which drops one
of the two loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
from mcp.types import CallToolResult, TextContent

from framewire import wire
from framewire.errors import ArgumentError, ReplyTooLargeError
from framewire.handle import Handle
from framewire.publish import PreparedTable
from framewire.split import Split, parse_domains, split
from framewire.typing import JSONValue
from framewire.values import json as json_values

Mode = Literal["async", "sync"]

_ENVELOPE_BYTES: Final = 4096
"""Reserved for the JSON-RPC message around a reply, and for the keys that the size of rows does not count."""

_CELLS_AT_ONCE: Final = 20_000
"""Cells encoded as JSON between two checks of the size: a huge table is refused after the first few megabytes."""


@dataclass(frozen=True)
class Request:
    """The arguments that framewire adds to a resource tool, parsed.

    Attributes:
        domains: Names in ``abstract_domains``, or None if it was not given (a plain reply).
        mode: Where the body goes.
        limit: Rows that the abstract shows, at most.
    """

    domains: tuple[str, ...] | None
    mode: Mode
    limit: int

    @classmethod
    def read(cls, domains: str, mode: str, limit: int) -> Request:
        """Read both arguments before the user's function runs, so that a slip costs nothing.

        Raises:
            ArgumentError: ``mode`` is neither, or ``abstract_domains`` is malformed.
        """
        chosen = mode.strip() or "async"
        if chosen not in ("async", "sync"):
            raise ArgumentError(
                f"mode is {chosen[:200]!r}.",
                hint="It takes 'async' (body behind resource_url) or 'sync' (body inline).",
            )
        # "[]" and "," name no column: an abstract of row ids alone. Only an absent argument shows everything.
        names = tuple(parse_domains(domains)) if domains.strip() else None
        return cls(names, "sync" if chosen == "sync" else "async", limit)


def reply(table: pa.Table, request: Request, publish: Callable[[PreparedTable], Handle]) -> CallToolResult:
    """Build the reply for a normalised table. Blocks; the handle is made last, when nothing else can fail.

    Raises:
        UnknownColumnError: ``abstract_domains`` names a column that does not exist.
        ReplyTooLargeError: A plain reply or an inline body does not fit.
        PublishError: The body could not be stored.
    """
    if request.domains is None:
        return _plain(table)
    parts = split(table.column_names, request.domains)
    prepared = PreparedTable.of(table)
    head: dict[str, Any] = {
        "total_rows": table.num_rows,
        "columns": list(table.column_names),
        "schema": prepared.schema,
        "abstract_domains": list(parts.abstract),
        "body_domains": list(parts.body),
    }
    left_bytes = wire.MAX_REPLY_BYTES - _ENVELOPE_BYTES - _cost(json_values.dumps(head))
    first = prepared.table.select([wire.ROW_ID, *parts.abstract]).slice(0, request.limit)
    if request.mode == "sync":
        return _result({**head, **_inline(prepared.table, first, parts, left_bytes)})
    shown, _ = _rows_that_fit(first, left_bytes)
    handle = publish(prepared).to_dict()
    links = {"resource_url": handle["resource_url"], "expires_at": handle["expires_at"]}
    return _result({**head, **links, **_abstract(shown, table)})


def _abstract(shown: list[JSONValue], table: pa.Table) -> dict[str, Any]:
    return {"shown_rows": len(shown), "truncated": len(shown) < table.num_rows, "abstract": shown}


def _inline(numbered: pa.Table, first: pa.Table, parts: Split, left_bytes: int) -> dict[str, Any]:
    """Abstract and body of a sync reply, which together hold every value of the table.

    The body leaves out the columns that the abstract shows in every row; where the abstract is cut, it has all columns.
    """
    for columns in (parts.body, numbered.column_names[1:]):
        body, left = _inline_body(numbered.select([wire.ROW_ID, *columns]), left_bytes)
        shown, _ = _rows_that_fit(first, left)
        if len(shown) == numbered.num_rows:
            break
    return {**_abstract(shown, numbered), "body": body}


def _inline_body(numbered: pa.Table, left_bytes: int) -> tuple[list[JSONValue], int]:
    rows, left_bytes = _rows_that_fit(numbered, left_bytes)
    if len(rows) < numbered.num_rows:
        raise ReplyTooLargeError(
            f"The body of {numbered.num_rows} rows does not fit into a reply of {_limit()}.",
            hint="Call again with mode='async': the body stays on the server, and the reply carries its resource_url.",
        )
    return rows, left_bytes


def _plain(table: pa.Table) -> CallToolResult:
    return plain_reply(table, hint=_choose_columns(table.column_names))


def plain_reply(table: pa.Table, *, hint: str) -> CallToolResult:
    """All rows: a JSON array as the text, and under ``result`` in the structured part (which must be an object).

    Raises:
        ReplyTooLargeError: They do not fit; ``hint`` is its hint.
    """
    rows, _ = _rows_that_fit(table, wire.MAX_REPLY_BYTES - _ENVELOPE_BYTES)
    if len(rows) < table.num_rows:
        size = f"{table.num_rows} rows of {table.num_columns} columns"
        raise ReplyTooLargeError(f"The {size} do not fit into a reply of {_limit()}.", hint=hint)
    return _result({"result": rows}, text=json_values.dumps(rows))


def _choose_columns(names: Sequence[str]) -> str:
    shown = ", ".join(names[:100]) + (f", ... ({len(names)} in all)" if len(names) > 100 else "")
    return f"Call again with abstract_domains naming the few columns that you need to read. The columns are: {shown}."


def _limit() -> str:
    return f"{wire.MAX_REPLY_BYTES >> 20} MiB"


def _rows_that_fit(table: pa.Table, left_bytes: int) -> tuple[list[JSONValue], int]:
    """As many leading rows as fit into ``left_bytes`` of the message, and the bytes that are left after them."""
    step = max(1, _CELLS_AT_ONCE // max(1, table.num_columns))
    rows: list[JSONValue] = []
    for start in range(0, table.num_rows, step):
        for row in json_values.encode_rows(table.slice(start, step), first_row=start):
            left_bytes -= _cost(json_values.dumps(row)) + 2  # its comma, twice
            if left_bytes < 0:
                return rows, 0
            rows.append(row)
    return rows, left_bytes


def _cost(text: str) -> int:
    """Bytes of the message that this JSON takes: once as structured content, once quoted as the text block."""
    return 2 * len(text.encode("utf-8")) + text.count('"') + text.count("\\")


def _result(value: dict[str, Any], *, text: str | None = None) -> CallToolResult:
    content = TextContent(type="text", text=json_values.dumps(value) if text is None else text)
    return CallToolResult(content=[content], structured_content=value)
