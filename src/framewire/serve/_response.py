"""Body, selection and accepted format -> the bytes of a response. Blocking work: runs off the event loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from framewire import wire
from framewire.arrow import types, write
from framewire.arrow.cast import cast_table
from framewire.arrow.compact import compact
from framewire.arrow.take import take_table
from framewire.errors import NoRoomError, OverloadedError, TooLargeError, UnknownColumnError
from framewire.host import memfd
from framewire.selection import Rows, Selection, resolve_rows
from framewire.serve._negotiate import Accepted, parse_range
from framewire.store import BodyStore, Entry, Representation
from framewire.values import json as json_values

_VARY: Final = f"Accept, {wire.H_TYPES}"


@dataclass(frozen=True)
class Response:
    """A finished response, its bytes held as views.

    Attributes:
        status: HTTP status.
        headers: Without Content-Length, which is ``encoded.nbytes``.
        encoded: The bytes.
        reservation: Closed once they are sent: returns the memory that a selection took to the budget.
    """

    status: int
    headers: Mapping[str, str]
    encoded: write.Encoded
    reservation: ExitStack = field(default_factory=ExitStack, repr=False)

    def slices(self) -> Iterator[memoryview]:
        """Iterate over the bytes, at most 1 MiB at a time."""
        return self.encoded.slices()


def respond(
    entry: Entry,
    selection: Selection,
    accepted: Accepted,
    store: BodyStore,
    *,
    max_selection_bytes: int,
    byte_range: str = "",
    if_range: str = "",
) -> Response:
    """Make the response to one fetch.

    Raises:
        RowOutOfRangeError, UnknownColumnError: The selection does not fit the table.
        TooLargeError: A scattered selection or a JSON response is above its limit.
        OverloadedError: The memory budget cannot hold it now.
        BadRangeError: ``Range`` lies outside the body.
    """
    table = entry.body.table
    rows = resolve_rows(selection.rows, table.num_rows)
    names = _columns(selection, table)
    if accepted.arrow and rows.is_all and (mapped := _mapped(entry, accepted)) is not None:
        return mapped
    if accepted.arrow and rows.is_all and names is None:
        return _whole(entry, accepted, byte_range, if_range)
    with ExitStack() as reservation:
        chosen = _select(table, rows, names, store, reservation, max_selection_bytes)
        if not accepted.arrow:
            return _json(chosen, reservation.pop_all())
        if not accepted.views and entry.body.has_views:
            _reserve(store, reservation, int(chosen.nbytes))
            chosen = cast_table(chosen, types.plain_schema(chosen.schema))
        encoded = _compressed(chosen, accepted, store, reservation) or write.encode(chosen)
        return Response(200, _headers(encoded.checksum, chosen.num_rows), encoded, reservation.pop_all())


def is_ready(entry: Entry, accepted: Accepted) -> bool:
    """Whether the whole body is sent as it is stored, without conversion or compression."""
    return accepted.arrow and accepted.codec is None and (accepted.views or not entry.body.has_views)


def _columns(selection: Selection, table: pa.Table) -> list[str] | None:
    """Return the columns to send, ``_row_id`` first; None for all of them."""
    if selection.columns is None:
        return None
    known = set(table.column_names)
    for name in selection.columns:
        if name not in known:
            raise UnknownColumnError.build(name, table.column_names)
    return [wire.ROW_ID, *selection.columns]


def _whole(entry: Entry, accepted: Accepted, byte_range: str, if_range: str) -> Response:
    body = entry.body
    stored = _representation(entry, accepted)
    view = memoryview(stored.buffer).cast("B")
    headers = _headers(stored.checksum, body.total_rows) | {"ETag": stored.etag, "Accept-Ranges": "bytes"}
    # A range of another representation than the client holds would corrupt its body: If-Range must name this one.
    wanted = parse_range(byte_range, len(view)) if byte_range and if_range in ("", stored.etag) else None
    if wanted is None:
        return Response(200, headers, write.Encoded((view,), len(view), stored.checksum))
    part = view[wanted.start : wanted.stop]
    headers |= {
        "Content-Range": f"bytes {wanted.start}-{wanted.stop - 1}/{len(view)}",
        wire.H_CHECKSUM: write.checksum([part]),
    }
    return Response(206, headers, write.Encoded((part,), len(part), headers[wire.H_CHECKSUM]))


def _mapped(entry: Entry, accepted: Accepted) -> Response | None:
    """Return the stored body's location to a client of this user on this host, which maps it and selects columns itself."""
    if entry.is_limited or not (accepted.views and accepted.host and accepted.host == memfd.host_identity()):
        return None
    location = entry.body.stored_bytes.location()
    if location is None:
        return None
    headers = _headers(entry.body.stored.checksum, entry.body.total_rows) | {wire.H_MAP: location.to_header()}
    return Response(200, headers, write.Encoded((), 0, entry.body.stored.checksum))


def _representation(entry: Entry, accepted: Accepted) -> Representation:
    codec = accepted.codec if entry.body.nbytes >= wire.MIN_COMPRESSED_BYTES else None
    try:
        return entry.form(views=accepted.views, codec=codec)
    except NoRoomError as exc:
        raise OverloadedError(
            "The server has no memory left to encode the body in this form now.", hint="Try again later."
        ) from exc


def _compressed(table: pa.Table, accepted: Accepted, store: BodyStore, reservation: ExitStack) -> write.Encoded | None:
    """Encode a selection in the codec that the client reads, its memory reserved; None where that does not pay."""
    nbytes = int(table.nbytes)
    if accepted.codec is None or nbytes < wire.MIN_COMPRESSED_BYTES:
        return None
    with ExitStack() as tentative:
        _reserve(store, tentative, nbytes)
        encoded = write.encode_if_smaller(table, accepted.codec)
        if encoded is not None:
            reservation.enter_context(tentative.pop_all())
        return encoded


def _select(
    table: pa.Table, rows: Rows, names: list[str] | None, store: BodyStore, reservation: ExitStack, max_bytes: int
) -> pa.Table:
    chosen = table if names is None else table.select(names)
    if rows.is_all:
        return chosen
    run = rows.contiguous
    if run is not None:
        # nbytes of a sliced view column counts every buffer it may point to, so the share of the table is taken.
        _reserve(store, reservation, _estimate(chosen, rows.count))
        return compact(chosen.slice(run[0], run[1] - run[0]))
    nbytes = _estimate(chosen, rows.count)
    if nbytes > max_bytes:
        fit = max(max_bytes * rows.count // nbytes, 1)
        raise TooLargeError(
            f"{rows.count} scattered rows are about {nbytes} bytes, above {max_bytes}.",
            hint=f"Fetch them in parts of at most {fit} rows.",
            details={"rows_that_fit": fit, "total_rows": table.num_rows},
        )
    _reserve(store, reservation, nbytes)
    return compact(take_table(chosen, rows.indices()))


def _estimate(table: pa.Table, count: int) -> int:
    nbytes, rows = int(table.nbytes), int(table.num_rows)
    return -(-nbytes * count // max(rows, 1))


def _reserve(store: BodyStore, reservation: ExitStack, nbytes: int) -> None:
    try:
        reservation.enter_context(store.reserve(nbytes))
    except NoRoomError as exc:
        raise OverloadedError(
            "The server has no memory left for this selection now.", hint="Try again later, or select fewer rows."
        ) from exc


def _json(table: pa.Table, reservation: ExitStack) -> Response:
    """Encode rows as the reference does: ``{"body": [rows], "total_rows": n}``."""
    with reservation:
        limit = wire.MAX_JSON_ANSWER_BYTES
        # Every value takes two bytes or more in JSON: a table of more values than that is refused before it is encoded.
        if table.num_rows * table.num_columns * 2 > limit or table.nbytes > 4 * limit:
            raise _json_too_large(table, None)
        payload: dict[str, Any] = {"body": json_values.encode_rows(table), "total_rows": table.num_rows}
        text = json_values.dumps(payload).encode()
        if len(text) > limit:
            raise _json_too_large(table, len(text))
    headers = _headers(write.checksum([text]), table.num_rows) | {"Content-Type": wire.JSON}
    return Response(200, headers, write.Encoded((memoryview(text),), len(text), headers[wire.H_CHECKSUM]))


def _json_too_large(table: pa.Table, nbytes: int | None) -> TooLargeError:
    size = nbytes or max(table.nbytes, table.num_rows * table.num_columns * 2)
    fit = max(table.num_rows * wire.MAX_JSON_ANSWER_BYTES // (2 * size), 1)
    return TooLargeError(
        f"The rows are above {wire.MAX_JSON_ANSWER_BYTES} bytes as JSON.",
        hint=f"Accept {wire.ARROW_STREAM}, or ask for about {fit} rows or fewer columns at a time.",
        details={"rows_that_fit": fit},
    )


def _headers(checksum: str, rows: int) -> dict[str, str]:
    return {
        "Content-Type": wire.ARROW_STREAM,
        wire.H_VERSION: wire.WIRE_VERSION,
        wire.H_ROWS: str(rows),
        wire.H_CHECKSUM: checksum,
        "Vary": _VARY,
        "Cache-Control": "no-store",
    }
