"""Body + selection + what the client reads -> the bytes of an answer. Blocking work: runs off the event loop."""

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
from framewire.errors import BadRangeError, NoRoomError, OverloadedError, TooLargeError, UnknownColumnError
from framewire.host import memfd
from framewire.selection import Rows, Selection, resolve_rows
from framewire.serve._negotiate import ByteRange, Wants, parse_range
from framewire.store import BodyStore, Entry, Representation
from framewire.values import json as json_values

_VARY: Final = f"Accept, {wire.H_TYPES}"


@dataclass(frozen=True)
class Answer:
    """A finished answer, its bytes held as views.

    Attributes:
        status: HTTP status.
        headers: Without Content-Length, which is ``encoded.nbytes``.
        encoded: The bytes.
        room: Closed once they are sent: gives back the memory that a selection took.
    """

    status: int
    headers: Mapping[str, str]
    encoded: write.Encoded
    room: ExitStack = field(default_factory=ExitStack, repr=False)

    def slices(self) -> Iterator[memoryview]:
        """The bytes, at most 1 MiB at a time."""
        return self.encoded.slices()


def answer(
    entry: Entry,
    selection: Selection,
    wants: Wants,
    store: BodyStore,
    *,
    max_selection_bytes: int,
    byte_range: str = "",
    if_range: str = "",
) -> Answer:
    """Make the answer to one fetch.

    Raises:
        RowOutOfRangeError, UnknownColumnError: The selection does not fit the table.
        TooLargeError: A scattered selection or a JSON answer is above its limit.
        OverloadedError: The memory budget has no room for it now.
        BadRangeError: ``Range`` lies outside the body.
    """
    table = entry.body.table
    rows = resolve_rows(selection.rows, table.num_rows)
    names = _columns(selection, table)
    if wants.arrow and rows.is_all and (mapped := _mapped(entry, wants)) is not None:
        return mapped
    if wants.arrow and rows.is_all and names is None:
        return _whole(entry, wants, byte_range, if_range)
    with ExitStack() as room:
        chosen = _select(table, rows, names, store, room, max_selection_bytes)
        if not wants.arrow:
            return _json(chosen, room.pop_all())
        if not wants.views and entry.body.has_views:
            _reserve(store, room, int(chosen.nbytes))
            chosen = cast_table(chosen, types.plain_schema(chosen.schema))
        encoded = _compressed(chosen, wants, store, room) or write.encode(chosen)
        return Answer(200, _headers(encoded.checksum, chosen.num_rows), encoded, room.pop_all())


def is_at_hand(entry: Entry, wants: Wants) -> bool:
    """Whether the whole body is sent as it is stored, with nothing to convert or compress."""
    return wants.arrow and wants.codec is None and (wants.views or not entry.body.has_views)


def _columns(selection: Selection, table: pa.Table) -> list[str] | None:
    """Columns to send, ``_row_id`` first, or None for the table as it stands."""
    if selection.columns is None:
        return None
    known = set(table.column_names)
    for name in selection.columns:
        if name not in known:
            raise UnknownColumnError.build(name, table.column_names)
    return [wire.ROW_ID, *selection.columns]


def _whole(entry: Entry, wants: Wants, byte_range: str, if_range: str) -> Answer:
    body = entry.body
    form = _form(entry, wants)
    view = memoryview(form.buffer).cast("B")
    headers = _headers(form.checksum, body.total_rows) | {"ETag": form.etag, "Accept-Ranges": "bytes"}
    # A range of other bytes than the client holds would be spliced into nonsense: If-Range must name this representation.
    wanted = _range(byte_range, len(view)) if byte_range and if_range in ("", form.etag) else None
    if wanted is None:
        return Answer(200, headers, write.Encoded((view,), len(view), form.checksum))
    part = view[wanted.start : wanted.stop]
    headers |= {
        "Content-Range": f"bytes {wanted.start}-{wanted.stop - 1}/{len(view)}",
        wire.H_CHECKSUM: write.checksum([part]),
    }
    return Answer(206, headers, write.Encoded((part,), len(part), headers[wire.H_CHECKSUM]))


def _mapped(entry: Entry, wants: Wants) -> Answer | None:
    """Where a client of this user on this host can map the stored body, in place of its bytes; it projects by itself."""
    if entry.uses is not None or not (wants.views and wants.host and wants.host == memfd.host_identity()):
        return None
    location = entry.body.kept.location()
    if location is None:
        return None
    headers = _headers(entry.body.stored.checksum, entry.body.total_rows) | {wire.H_MAP: location.to_header()}
    return Answer(200, headers, write.Encoded((), 0, entry.body.stored.checksum))


def _range(text: str, nbytes: int) -> ByteRange | None:
    try:
        return parse_range(text, nbytes)
    except ValueError:
        raise BadRangeError(
            "The range lies outside the body.", hint=f"It has {nbytes} bytes.", details={"nbytes": nbytes}
        ) from None


def _form(entry: Entry, wants: Wants) -> Representation:
    codec = wants.codec if entry.body.nbytes >= wire.MIN_COMPRESSED_BYTES else None
    try:
        return entry.form(views=wants.views, codec=codec)
    except NoRoomError as exc:
        raise OverloadedError(
            "The server has no room to make this form of the body now.", hint="Try again later."
        ) from exc


def _compressed(table: pa.Table, wants: Wants, store: BodyStore, room: ExitStack) -> write.Encoded | None:
    """A selection in the codec that the client reads, its memory reserved; None where that does not pay."""
    nbytes = int(table.nbytes)
    if wants.codec is None or nbytes < wire.MIN_COMPRESSED_BYTES:
        return None
    with _room_for(store, nbytes) as reservation:
        made = write.encode_if_smaller(table, wants.codec)
        if made is not None:
            room.enter_context(reservation.pop_all())
        return made


def _select(
    table: pa.Table, rows: Rows, names: list[str] | None, store: BodyStore, room: ExitStack, max_bytes: int
) -> pa.Table:
    chosen = table if names is None else table.select(names)
    if rows.is_all:
        return chosen
    run = rows.contiguous
    if run is not None:
        # A slice of views counts all that they could point to, so its share of the table is taken.
        _reserve(store, room, _estimate(chosen, rows.count))
        return compact(chosen.slice(run[0], run[1] - run[0]))
    nbytes = _estimate(chosen, rows.count)
    if nbytes > max_bytes:
        fit = max(max_bytes * rows.count // nbytes, 1)
        raise TooLargeError(
            f"{rows.count} scattered rows are about {nbytes} bytes, above {max_bytes}.",
            hint=f"Fetch them in parts of at most {fit} rows.",
            details={"rows_that_fit": fit, "total_rows": table.num_rows},
        )
    _reserve(store, room, nbytes)
    return compact(take_table(chosen, rows.indices()))


def _estimate(table: pa.Table, count: int) -> int:
    nbytes, rows = int(table.nbytes), int(table.num_rows)
    return -(-nbytes * count // max(rows, 1))


def _room_for(store: BodyStore, nbytes: int) -> ExitStack:
    room = ExitStack()
    _reserve(store, room, nbytes)
    return room


def _reserve(store: BodyStore, room: ExitStack, nbytes: int) -> None:
    try:
        room.enter_context(store.reserve(nbytes))
    except NoRoomError as exc:
        raise OverloadedError(
            "The server has no room for this selection now.", hint="Try again later, or select fewer rows."
        ) from exc


def _json(table: pa.Table, room: ExitStack) -> Answer:
    """The reference's answer: ``{"body": [rows], "total_rows": n}``."""
    with room:
        limit = wire.MAX_JSON_ANSWER_BYTES
        # Every value takes two bytes or more in JSON: a table of more values than that is refused before it is encoded.
        if table.num_rows * table.num_columns * 2 > limit or table.nbytes > 4 * limit:
            raise _json_too_large(table, None)
        payload: dict[str, Any] = {"body": json_values.encode_rows(table), "total_rows": table.num_rows}
        text = json_values.dumps(payload).encode()
        if len(text) > limit:
            raise _json_too_large(table, len(text))
    headers = _headers(write.checksum([text]), table.num_rows) | {"Content-Type": wire.JSON}
    return Answer(200, headers, write.Encoded((memoryview(text),), len(text), headers[wire.H_CHECKSUM]))


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
