"""Fetches from peers that do not promise wire version 1: the reference implementation, which misreads some requests.

Seen in ``mcp-sd`` 0.1.2: an empty ``row_ids`` means every row; unknown ids, unknown columns and duplicates vanish without a word;
order is the table's; one response spends the handle. So ranges are expanded, an empty selection is never sent, and the
rows that arrive are checked and put in order here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from framewire import wire
from framewire.client._call import Headers, Request
from framewire.client._failures import AGAIN
from framewire.client._plan import FetchPlan, check_error_head, error_of, post, selection_payload
from framewire.errors import ArgumentError, BadBodyError, TooLargeError
from framewire.inline import pick, table_of_rows
from framewire.selection import RowSpec


class LegacyPlan(FetchPlan):
    """A fetch from a legacy peer."""

    def request(self) -> Request:
        """``POST`` with every id written out once; an open range asks for every row."""
        wanted: RowSpec | None = None
        if self.rows is not None and not self.rows.is_open:
            if (self.rows.count() or 0) > self.settings.max_rows:
                raise TooLargeError("More rows are selected than FRAMEWIRE_MAX_ROWS allows.", hint="Select fewer rows.")
            wanted = self.rows
        payload = selection_payload(None, self.columns)
        if wanted is not None:
            payload["row_ids"] = list(dict.fromkeys(wanted.expand().tolist()))
        return post(((b"Accept", wire.JSON.encode()), (b"Accept-Encoding", b"identity")), payload)

    def check_head(self, status: int, headers: Headers) -> None:
        """See ``FetchPlan``."""
        if status != 200:
            check_error_head(status, headers)
        elif headers.get("content-type", "").partition(";")[0].strip().lower() != wire.JSON:
            raise BadBodyError("The response is not JSON.", hint=AGAIN)

    def finish(self, status: int, headers: Headers, body: pa.Buffer, checksum: str | None = None) -> pa.Table:
        """See ``FetchPlan``: the reference's JSON rows, typed by the rule for ``list[dict]``."""
        if status != 200:
            raise error_of(status, body)
        rows = _rows_of(body)
        if len(rows) > self.settings.max_rows:
            raise TooLargeError(
                f"The response has {len(rows)} rows.", hint="Select fewer rows, or raise FRAMEWIRE_MAX_ROWS."
            )
        try:
            table = table_of_rows(rows)
        except ArgumentError as exc:
            raise BadBodyError(exc.message, hint=AGAIN) from exc
        return pick(table, self.rows, self.columns)


def _rows_of(body: pa.Buffer) -> list[Mapping[str, Any]]:
    try:
        payload = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise BadBodyError("The response is not valid JSON.", hint=AGAIN) from None
    rows = payload.get("body") if isinstance(payload, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadBodyError('The response has no list of rows under "body".', hint=AGAIN)
    if payload.get("total_rows", len(rows)) != len(rows):
        raise BadBodyError(f"The response holds {len(rows)} rows and announces another number.", hint=AGAIN)
    return rows
