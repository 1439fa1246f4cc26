"""Requests of wire version 1 and the judgement of their responses, without any I/O.

A plan makes the request, judges the head of the response before a byte of its body is read, and turns the body into a table, or
into one of framewire's errors. What moves the bytes holds no rule of the wire.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from framewire import wire
from framewire.arrow import read, write
from framewire.client._call import Headers, RawHeaders, Request
from framewire.client._failures import AGAIN
from framewire.errors import (
    BadBodyError,
    InvalidTokenError,
    OverloadedError,
    S2SPError,
    TooLargeError,
    TransferFailedError,
    UnknownColumnError,
    UnsupportedVersionError,
    error_from_wire,
)
from framewire.host import memfd
from framewire.selection import RowSpec

if TYPE_CHECKING:
    from framewire.client._policy import Target
    from framewire.settings import Settings
_FRESH: Final = "Call the resource tool again for a fresh one."
_MAX_ERROR_BYTES: Final = 64 << 10
"""Largest body of an error: a short text, whatever the limit for tables."""
_MAX_TEXT: Final = 600
"""Characters of a server's own error text that are passed on: it may end up before a model."""


@dataclass(frozen=True)
class FetchPlan(ABC):
    """One request and the judgement of its response.

    Attributes:
        target: Where to, as the policy allowed it.
        rows: Rows asked for, or None for all.
        columns: Columns asked for, or None for all.
        settings: Limits.
    """

    target: Target
    rows: RowSpec | None
    columns: tuple[str, ...] | None
    settings: Settings

    @abstractmethod
    def request(self) -> Request:
        """The request, without path and Host header."""

    @abstractmethod
    def check_head(self, status: int, headers: Headers) -> None:
        """Refuse a response by its head alone, before its body is read."""

    @abstractmethod
    def finish(self, status: int, headers: Headers, body: pa.Buffer, checksum: str | None = None) -> pa.Table:
        """The table, ``_row_id`` first, rows in the order asked for. ``checksum`` is that of ``body`` if it is known."""


class NotMappableError(TransferFailedError):
    """A same-host body could not be mapped; caught by the fetch, which falls back to HTTP."""


@dataclass(frozen=True)
class WirePlan(FetchPlan):
    """A fetch from a peer whose token promises wire version 1. Further attributes as in :class:`FetchPlan`.

    Attributes:
        may_map: Whether a body of this user on this host may be mapped. Only ever of a trusted peer, and only with every row:
            a small selection is cheaper to copy than a whole body is to pin.
    """

    may_map: bool = False

    def request(self) -> Request:
        """``GET`` for a whole body, which can be resumed; ``POST`` for a selection."""
        headers = _accepting(self.settings.codecs if self._may_compress else ())
        if self.may_map and (identity := memfd.host_identity()) is not None:
            headers = (*headers, (wire.H_MAP.encode(), identity.encode()))
        if self.rows is None and self.columns is None:
            return Request("GET", headers)
        return post(headers, selection_payload(self.rows, self.columns))

    def check_head(self, status: int, headers: Headers) -> None:
        """See :class:`FetchPlan`. The order is fixed: status, version, form, length, rows, checksum."""
        if status != 200:
            check_error_head(status, headers)
            return
        if headers.get(wire.H_VERSION) != wire.WIRE_VERSION:
            raise UnsupportedVersionError(
                "The server does not answer in wire version 1.", hint="Update the older side."
            )
        if headers.get("content-type", "").partition(";")[0].strip().lower() != wire.ARROW_STREAM:
            raise BadBodyError("The response is not an Arrow stream.", hint=AGAIN)
        if "content-length" not in headers:
            raise BadBodyError("The response does not state its length.", hint=AGAIN)
        rows = _announced_rows(headers)
        if rows > self.settings.max_rows:
            raise TooLargeError(
                f"The response has {rows} rows, above {self.settings.max_rows}.",
                hint="Select fewer rows with row_ids, or raise FRAMEWIRE_MAX_ROWS.",
            )
        expected = None if self.rows is None else self.rows.count()
        if expected is not None and rows != expected:
            raise BadBodyError(f"The response has {rows} rows where {expected} were asked for.", hint=AGAIN)
        if not headers.get(wire.H_CHECKSUM, "").startswith(f"{wire.CHECKSUM_ALGORITHM}="):
            raise BadBodyError("The response has no checksum.", hint=AGAIN)

    def finish(self, status: int, headers: Headers, body: pa.Buffer, checksum: str | None = None) -> pa.Table:
        """See :class:`FetchPlan`."""
        if status != 200:
            raise error_of(status, body)
        if self.may_map and wire.H_MAP in headers:
            return self._map(headers)
        if (checksum or write.checksum([body])) != headers[wire.H_CHECKSUM]:
            raise BadBodyError("The checksum does not match: the body was altered on its way.", hint=AGAIN)
        table = read.decode(
            body,
            rows=_announced_rows(headers),
            max_rows=self.settings.max_rows,
            max_bytes=self.settings.max_body_bytes,
            validate=not self.target.trusted,
            allow_compression=self._may_compress,
        )
        self._check_columns(table)
        _check_ids(table, self.rows, trusted=self.target.trusted)
        return table

    @property
    def _may_compress(self) -> bool:
        """Compressed buffers expand, so only those of trusted peers are read; on one host they would only cost time."""
        return self.target.trusted and not self.target.is_loopback and bool(self.settings.codecs)

    def _map(self, headers: Headers) -> pa.Table:
        """Map the file that the server named. It is this user's own, sealed, so its bytes are not read to be checked."""
        location = memfd.Location.from_header(headers[wire.H_MAP])
        buffer = None if location is None else memfd.open_sealed(location)
        if buffer is None:
            raise NotMappableError("The body cannot be mapped.")
        table = read.open_own(buffer)
        if table.num_rows != _announced_rows(headers):
            raise NotMappableError("The mapped body is another one.")
        if self.columns is not None:
            for name in self.columns:
                if name not in table.column_names:
                    raise UnknownColumnError.build(name, table.column_names)
            table = table.select([wire.ROW_ID, *self.columns])
        self._check_columns(table)
        return table

    def _check_columns(self, table: pa.Table) -> None:
        schema = table.schema
        names = schema.names
        if not names or names[0] != wire.ROW_ID or schema.field(0).type != pa.int64() or len(set(names)) < len(names):
            raise BadBodyError(
                f"The body's first column is not {wire.ROW_ID} (int64), or a name appears twice.", hint=AGAIN
            )
        if self.columns is not None and tuple(names[1:]) != self.columns:
            raise BadBodyError("The body has other columns than were asked for.", hint=AGAIN)


def _check_ids(table: pa.Table, rows: RowSpec | None, *, trusted: bool = False) -> None:
    """Check that the ids that arrived are those asked for, in their order.

    Every row of a trusted peer is numbered by the peer itself, so that only the ends are read: comparing all ids would take
    a tenth of the whole fetch of a body of numbers.
    """
    column = table.column(0)
    if column.null_count:
        raise BadBodyError(f"{wire.ROW_ID} holds nulls.", hint=AGAIN)
    # Not to_numpy(): it imports pandas where that is installed, half a second of a process's first fetch. Nor one array of all
    # chunks: for a body of numbers that would be an eighth of its memory once more.
    parts = [np.frombuffer(c.buffers()[1], np.int64, len(c), 8 * c.offset) for c in column.chunks if len(c)]
    starts = accumulate(map(len, parts), initial=0)
    if rows is None and trusted:
        valid = not parts or (parts[0][0] == 0 and parts[-1][-1] == len(column) - 1)
    elif rows is None:
        valid = all(_is_numbered(part, start) for part, start in zip(parts, starts, strict=False))
    elif rows.is_open:
        # The end of an open range is the server's to know; its closed head is not worth a second rule.
        valid = all(part.min() >= 0 for part in parts)
    else:
        wanted = rows.expand()
        valid = len(wanted) == len(column) and all(
            np.array_equal(part, wanted[start : start + len(part)]) for part, start in zip(parts, starts, strict=False)
        )
    if not valid:
        raise BadBodyError("The body holds other rows than were asked for.", hint=AGAIN)


_BLOCK: Final = 1 << 15
_FIRST_IDS: Final = np.arange(_BLOCK, dtype=np.int64)


def _is_numbered(ids: Any, first: int) -> bool:
    """Whether ``ids`` count up from ``first``, block by block: as many numbers to compare them with would take longer to make."""
    for start in range(0, len(ids), _BLOCK):
        part = ids[start : start + _BLOCK]
        if (part != _FIRST_IDS[: len(part)] + (first + start)).any():
            return False
    return True


def selection_payload(rows: RowSpec | None, columns: Sequence[str] | None) -> dict[str, Any]:
    """The JSON object of a ``POST``; keys for "all" are left out."""
    payload: dict[str, Any] = {}
    if rows is not None:
        payload["row_ids"] = rows.to_wire()
    if columns is not None:
        payload["columns"] = list(columns)
    return payload


def post(headers: RawHeaders, payload: dict[str, Any]) -> Request:
    """A ``POST`` of a selection, refused here where the server would refuse it for its size."""
    content = json.dumps(payload, separators=(",", ":")).encode()
    if len(content) > wire.MAX_REQUEST_BYTES:
        raise TooLargeError(
            f"The selection takes {len(content)} bytes, above {wire.MAX_REQUEST_BYTES}.",
            hint="Select neighbouring rows as ranges, or fetch every row.",
        )
    return Request("POST", (*headers, (b"Content-Type", wire.JSON.encode())), content)


@lru_cache(maxsize=8)
def _accepting(codecs: tuple[str, ...]) -> RawHeaders:
    named = {
        "Accept": wire.ARROW_STREAM + (f'; codecs="{", ".join(codecs)}"' if codecs else ""),
        "Accept-Encoding": "identity",
        wire.H_VERSION: wire.WIRE_VERSION,
        wire.H_TYPES: wire.TYPES_VIEWS,
    }
    return tuple((name.encode(), value.encode()) for name, value in named.items())


def _announced_rows(headers: Headers) -> int:
    text = headers.get(wire.H_ROWS, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise BadBodyError("The response does not state its number of rows.", hint=AGAIN)
    return int(text)


def check_error_head(status: int, headers: Headers) -> None:
    """Refuse a response other than 200, unless it is a short error whose body may be read."""
    if status < 400:
        raise TransferFailedError(
            f"The server answered with status {status}.", hint="Redirects are not followed. " + AGAIN
        )
    length = headers.get("content-length", "")
    if not length or int(length) > _MAX_ERROR_BYTES:
        raise TransferFailedError(f"The server answered with status {status}.", hint=AGAIN)


def error_of(status: int, body: pa.Buffer) -> S2SPError:
    """The error that a response carries; its text is cut to a length fit for a model's context."""
    try:
        payload = json.loads(bytes(body))
    except (ValueError, RecursionError):
        payload = None
    if isinstance(payload, dict) and isinstance(payload.get("code"), str):
        texts = {key: str(payload.get(key, ""))[:_MAX_TEXT] for key in ("code", "error", "hint")}
        facts = {k: payload[k] for k in ("rows_that_fit", "total_rows", "row") if type(payload.get(k)) is int}
        return error_from_wire(texts | facts)
    if status in (404, 410):
        return InvalidTokenError("The resource_url is unknown to its server, or was used up.", hint=_FRESH)
    if status == 503:
        return OverloadedError("The server has no capacity for this request now.", hint="Try again later.")
    return TransferFailedError(f"The server answered with status {status}.", hint=AGAIN)
