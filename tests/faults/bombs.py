"""Small streams that claim, or come to, far more than they are. ``BOMBS`` are built when they are asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.faults.streams import END, parts, patch, splice, stream

BUDGET: Final = 64 << 20
"""Bytes that the reader allows; every bomb comes to more, or lies."""
_ROWS: Final = 7777
"""A number that stands nowhere else in a stream, to be replaced by a forged one."""
_HUGE: Final = 1 << 40
_MANY: Final = 1 << 30
"""Fewer rows than are allowed, but more than the budget has bytes."""
_MIB: Final = 1 << 20
_TEXT: Final = pa.string()
_TEXT_VIEW: Final = pa.string_view()


@dataclass(frozen=True)
class Bomb:
    """One bomb.

    Attributes:
        because: What the error says, as a pattern: that it is refused is not enough, the check meant for it must do it.
        build: Makes its bytes.
        allow_compression: Whether the reader allows compression (a bomb of its own kind).
    """

    name: str
    because: str
    build: Callable[[], bytes]
    allow_compression: bool = False


# What the checks say.
_MANY_ROWS: Final = "more than 2147483648 rows"
_DECODED: Final = "bytes once decoded, above"
_SHOWN: Final = "bytes once written out, above"
_SHORT: Final = "does not fit its buffers"
_TEXTS: Final = "more text than it has room for"
_ARROW: Final = "not a valid Arrow stream"
"""What Arrow's own reader refuses."""
_OUTSIDE: Final = "outside its batch"
_TYPE: Final = "does not carry"


def _one(values: Any) -> pa.Table:
    return pa.table({"x": values})


def _forged_rows(values: pa.Array, rows: int = _HUGE) -> bytes:
    return patch(stream(_one(values)), _ROWS, rows)


def _of_struct(children: int) -> pa.Array:
    fields = [pa.field(f"f{i}", pa.null()) for i in range(children)]
    return pa.array([{}] * _ROWS, pa.struct(fields))


def _big_text(rows: int, kind: pa.DataType = _TEXT_VIEW) -> pa.Array:
    """Views of one megabyte of text, ``rows`` times the same."""
    text = pa.array(["x" * _MIB], kind)
    views = np.frombuffer(text.buffers()[1], np.uint8)[:16]
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(np.tile(views, rows)), *text.buffers()[2:]])


def _big_dictionary(rows: int, kind: pa.DataType = _TEXT) -> pa.Array:
    indices = pa.array(np.zeros(rows, np.int8))
    return pa.DictionaryArray.from_arrays(indices, pa.array(["x" * _MIB]).cast(kind))


def _in_lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _zeros(codec: str) -> bytes:
    return stream(_one(np.zeros(32 * _MIB, np.int64)), compression=codec)


def _prefix(declared: int, codec: str = "zstd", values: int = 1000) -> bytes:
    """A compressed column whose declared length is another than its own."""
    data = stream(_one(np.zeros(values, np.int64)), compression=codec)
    body = parts(data)[-1].body
    assert data[body : body + 8] == struct.pack("<q", 8 * values)
    return data[:body] + struct.pack("<q", declared) + data[body + 8 :]


def _hidden_frame(codec: str) -> bytes:
    """A frame of 256 MiB that says it holds 8 KB, for a column of a thousand rows."""
    values = 33_333_333
    large = stream(_one(np.zeros(values, np.int64)), compression=codec)
    body = parts(large)[-1].body
    return patch(large[:body] + struct.pack("<q", 8000) + large[body + 8 :], values, 1000)


def _deltas() -> bytes:
    """Each delta makes a new dictionary of all before: the square of what is sent."""
    texts = [f"{i:05d}" * 3300 for i in range(100)]
    chunks = [pa.DictionaryArray.from_arrays(pa.array([i], pa.int32()), pa.array(texts[: i + 1])) for i in range(100)]
    return stream(pa.table({"x": pa.chunked_array(chunks)}), emit_dictionary_deltas=True)


def _shared_bytes() -> bytes:
    """A thousand columns that all point at the bytes of one."""
    names = [f"c{i}" for i in range(1000)]
    empty = stream(pa.table({name: pa.nulls(_ROWS, pa.int64()).fill_null(7) for name in names}))
    part = parts(empty)[-1]
    metadata = bytearray(empty[part.start : part.body])
    size = struct.pack("<q", 8 * _ROWS)
    places = [i for i in range(0, len(metadata), 8) if metadata[i : i + 8] == size]
    assert len(places) >= 1000
    for place in places[-1000:]:
        metadata[place - 8 : place] = bytes(8)  # where its data are
        metadata[place - 24 : place - 16] = bytes(8)  # and its bitmap, of no bytes
    # What the body was is cut to the one column that is left.
    length = struct.pack("<q", part.end - part.body)
    assert metadata.count(length) == 1
    shorter = metadata.replace(length, size)
    return empty[: part.start] + bytes(shorter) + empty[part.body : part.body + 8 * _ROWS] + END


def _endless_schema() -> bytes:
    """Structs of two fields, forty levels deep, whose second field is the first again: 2^40 fields in a few KB."""
    kind: pa.DataType = pa.int8()
    for _ in range(40):
        kind = pa.struct([("first", kind), ("other", pa.int8())])
    data = bytearray(stream(pa.table({"x": pa.array([], kind)})))
    part = parts(bytes(data))[0]
    patched = 0
    for place in range(part.start, part.body - 12, 4):
        count, first, other = struct.unpack_from("<III", data, place)
        # A vector of two fields: both offsets lead forward, to tables in this message.
        if count == 2 and 0 < first < part.body - place and 0 < other < part.body - place and first != other:
            if data[place + 4 + first : place + 8 + first] == data[place + 8 + other : place + 12 + other]:
                continue
            struct.pack_into("<I", data, place + 8, first - 4)
            patched += 1
    assert patched >= 20, patched
    return bytes(data)


def _empty_batches() -> bytes:
    schema = pa.schema([("x", pa.int64())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([], pa.int64())], schema=schema))
    return splice(bytes(sink.getvalue()), 1, 100_000)


def _view_count(count: int) -> bytes:
    """A column of views that says it has ``count`` buffers, where it has 33."""
    views = struct.pack("<i4sii", 16, b"xxxx", 0, 0) * 10
    buffers = [None, pa.py_buffer(views), *[pa.py_buffer(b"x" * 16)] * 33]
    return patch(stream(_one(pa.Array.from_buffers(pa.string_view(), 10, buffers))), 33, count)


def _endless_metadata(place: str) -> bytes:
    """Two thousand entries that all lead to one value of 200 KB."""
    count, nbytes = 2000, 200_000
    entries = {f"k{i}": "v" for i in range(count)} | {"long": "x" * nbytes}
    metadata = {name: entries if name == place else None for name in ("schema", "field", "batch")}
    schema = pa.schema([pa.field("x", pa.int8(), metadata=metadata["field"])], metadata=metadata["schema"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        batch = pa.record_batch([pa.array([1], pa.int8())], schema=schema)
        writer.write_batch(batch, custom_metadata=metadata["batch"])
    data = bytearray(sink.getvalue().to_pybytes())
    part = parts(bytes(data))[place == "batch"]
    for start in range(part.start, part.body - 4 * count, 4):
        if struct.unpack_from("<I", data, start)[0] != count + 1:
            continue
        tables = [at + struct.unpack_from("<I", data, at)[0] for at in range(start + 4, start + 8 + 4 * count, 4)]
        values = {table: _text_size(data, table) for table in tables if table < part.body}
        longest = max(values, key=lambda table: values[table], default=0)
        if values.get(longest) == nbytes:
            for at in range(start + 4, start + 8 + 4 * count, 4):
                if at < longest:
                    struct.pack_into("<I", data, at, longest - at)
            return bytes(data)
    raise AssertionError("no list of entries was found")


def _text_size(data: bytearray, table: int) -> int:
    """Bytes of an entry's value, which is its second slot."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if not 0 <= vtable < len(data) - 8 or struct.unpack_from("<H", data, vtable)[0] < 8:
        return -1
    at = table + struct.unpack_from("<H", data, vtable + 6)[0]
    text = at + struct.unpack_from("<I", data, at)[0] if at < len(data) - 4 else len(data)
    return int(struct.unpack_from("<I", data, text)[0]) if text < len(data) - 4 else -1


def _null_views() -> pa.Array:
    """A null over a view of 64 KB into a buffer of 30 bytes: Arrow does not validate it, and Polars copies what it points to."""
    text = pa.array(["x" * 30, None], _TEXT_VIEW)
    views = bytearray(text.buffers()[1])
    struct.pack_into("<i4sii", views, 16, 1 << 16, b"xxxx", 0, 0)
    return pa.Array.from_buffers(_TEXT_VIEW, 2, [text.buffers()[0], pa.py_buffer(bytes(views)), text.buffers()[2]], 1)


def _view_deltas() -> bytes:
    """Arrow validates a dictionary fully before it adds to it: a megabyte for each of its views, which nobody has weighed."""
    words = _big_text(2)
    more = pa.concat_arrays([words, pa.array(["more"], _TEXT_VIEW)])
    indices = pa.array([0, 1], pa.int32())
    chunks = [pa.DictionaryArray.from_arrays(indices, values) for values in (words, more)]
    return stream(pa.table({"x": pa.chunked_array(chunks)}), emit_dictionary_deltas=True)


def _message_size(size: int) -> bytes:
    data = bytearray(stream(_one(np.arange(10))))
    start = parts(bytes(data))[1].start
    data[start - 4 : start] = struct.pack("<i", size)
    return bytes(data)


def _list_views() -> pa.Array:
    items = pa.array(np.zeros(1000, np.int8))
    offsets, sizes = np.zeros(1 << 20, np.int32), np.full(1 << 20, 1000, np.int32)
    return pa.ListViewArray.from_arrays(pa.array(offsets), pa.array(sizes), items)


def _run_ends(rows: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int64()), pa.array(["x" * 1000]))


def _plain(old: int, new: int) -> bytes:
    """Two columns of numbers with one number of their metadata forged."""
    values = np.arange(_ROWS) % 100
    return patch(stream(pa.table({"x": values, "y": values.astype(np.int16)})), old, new)


_DATA: Final = 8 * _ROWS
_BODY: Final = 10 * _ROWS + 6
"""Bytes of the first column's data, and of the whole body with its padding."""


def _rows() -> Iterator[Bomb]:
    yield Bomb("null column", _MANY_ROWS, lambda: _forged_rows(pa.nulls(_ROWS)))
    yield Bomb("null column, as pyarrow writes it", _DECODED, lambda: stream(_one(pa.nulls((1 << 31) - 2))))
    yield Bomb("null column, the most rows", _MANY_ROWS, lambda: _forged_rows(pa.nulls(_ROWS), (1 << 63) - 1))
    yield Bomb("null column, fewer than no rows", "fewer than no rows", lambda: _forged_rows(pa.nulls(_ROWS), -1))
    yield Bomb(
        "null columns, a thousand",
        _DECODED,
        lambda: stream(pa.table({f"c{i}": pa.nulls(1 << 20) for i in range(1000)})),
    )
    yield Bomb("null column, many batches", _DECODED, lambda: splice(stream(_one(pa.nulls(1 << 20))), 1, 1000))
    yield Bomb("no columns", _DECODED, lambda: patch(stream(_one(pa.nulls(_ROWS)).select([])), _ROWS, _MANY))
    yield Bomb("no fields", _DECODED, lambda: _forged_rows(pa.array([{}] * _ROWS, pa.struct([])), _MANY))
    yield Bomb("fields of nulls", _DECODED, lambda: _forged_rows(_of_struct(3), _MANY))
    yield Bomb("binary of no width", _DECODED, lambda: _forged_rows(pa.array([b""] * _ROWS, pa.binary(0)), _MANY))
    yield Bomb(
        "lists of no items", _DECODED, lambda: _forged_rows(pa.array([[]] * _ROWS, pa.list_(pa.int8(), 0)), _MANY)
    )
    yield Bomb("lists of nulls", _DECODED, lambda: _forged_rows(_in_lists(pa.nulls(_ROWS))))
    yield Bomb("lists of two billion nulls each", _DECODED, _wide_lists)
    yield Bomb("booleans", _SHORT, lambda: _forged_rows(pa.array([True] * _ROWS), _MANY))
    yield Bomb("empty batches", "or 4096 without rows", _empty_batches)


def _wide_lists() -> bytes:
    """Ten lists of two billion nulls each."""
    size, most = 77_777, (1 << 31) - 1
    data = stream(_one(pa.FixedSizeListArray.from_arrays(pa.nulls(10 * size), size)))
    return patch(patch(data, size, most, message=0, code="i"), 10 * size, 10 * most)


def _compressed() -> Iterator[Bomb]:
    for codec in ("zstd", "lz4"):
        yield Bomb(f"{codec}, not asked for", "compressed, which was not asked for", lambda codec=codec: _zeros(codec))  # type: ignore[misc]
        yield Bomb(f"{codec}", _DECODED, lambda codec=codec: _zeros(codec), True)  # type: ignore[misc]
        yield Bomb(f"{codec}, forged length", _DECODED, lambda codec=codec: _prefix(1 << 46, codec), True)  # type: ignore[misc]
        yield Bomb(f"{codec}, shorter than its rows", _ARROW, lambda codec=codec: _prefix(8, codec), True)  # type: ignore[misc]
        yield Bomb(f"{codec}, more in the frame", "OSError", lambda codec=codec: _hidden_frame(codec), True)  # type: ignore[misc]
    yield Bomb("zstd, length below nothing", "less than nothing", lambda: _prefix(-2), True)
    yield Bomb("zstd, most negative length", "less than nothing", lambda: _prefix(-(1 << 63)), True)
    yield Bomb("zstd, many columns", _DECODED, lambda: stream(_many_zeros(), compression="zstd"), True)
    yield Bomb(
        "zstd, many batches", _DECODED, lambda: stream(_one(np.zeros(16 * _MIB)), 1 << 16, compression="zstd"), True
    )
    yield Bomb("zstd, views of one text", _SHOWN, lambda: stream(_one(_big_text(2000)), compression="zstd"), True)
    yield Bomb(
        "zstd, one word in a dictionary", _SHOWN, lambda: stream(_one(_big_dictionary(1000)), compression="zstd"), True
    )


def _many_zeros() -> pa.Table:
    zeros = pa.array(np.zeros(_MIB, np.int64))
    return pa.table({f"c{i}": zeros for i in range(20)})


def _expanding() -> Iterator[Bomb]:
    yield Bomb("views of one text", _SHOWN, lambda: stream(_one(_big_text(2000))))
    yield Bomb("binary views", _SHOWN, lambda: stream(_one(_big_text(2000, pa.binary_view()))))
    yield Bomb("views in lists", _SHOWN, lambda: stream(_one(_in_lists(_big_text(2000)))))
    yield Bomb("views in structs", _SHOWN, lambda: stream(_one(pa.StructArray.from_arrays([_big_text(2000)], ["t"]))))
    yield Bomb("one word in a dictionary", _SHOWN, lambda: stream(_one(_big_dictionary(1000))))
    yield Bomb("dictionary of views", _SHOWN, lambda: stream(_one(_big_dictionary(1000, pa.string_view()))))
    yield Bomb("dictionary of large binary", _SHOWN, lambda: stream(_one(_big_dictionary(1000, pa.large_binary()))))
    yield Bomb("dictionary in lists", _SHOWN, lambda: stream(_one(_in_lists(_big_dictionary(1000)))))
    yield Bomb("dictionary shared by batches", _SHOWN, lambda: stream(_one(_big_dictionary(1000)), 10))
    yield Bomb("dictionary, forged length", _SHORT, lambda: patch(_words(), _ROWS, _HUGE, message=1))
    yield Bomb("dictionary deltas", _DECODED, _deltas)
    yield Bomb("run ends", _TYPE, lambda: stream(_one(_run_ends((1 << 31) - 2))))
    yield Bomb(
        "run ends in a struct",
        _TYPE,
        lambda: stream(_one(pa.StructArray.from_arrays([_run_ends((1 << 31) - 2)], ["r"]))),
    )
    yield Bomb("list views", _TYPE, lambda: stream(_one(_list_views())))
    yield Bomb(
        "union", _TYPE, lambda: stream(_one(pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])))
    )


def _short_texts() -> pa.Array:
    return pa.array(["xy"] * _ROWS)


def _words() -> bytes:
    return stream(_one(pc.dictionary_encode(pa.array([f"word {i}" for i in range(_ROWS)])).slice(0, 10)))


def _forged() -> Iterator[Bomb]:
    yield Bomb("metadata of two gigabytes", _ARROW, lambda: _message_size((1 << 31) - 8))
    yield Bomb("metadata below nothing", "begin where it should", lambda: _message_size(-8))
    yield Bomb("body of 2^62", _ARROW, lambda: _plain(_BODY, 1 << 62))
    yield Bomb("body below nothing", _ARROW, lambda: _plain(_BODY, -8))
    yield Bomb("buffer of 2^62", _OUTSIDE, lambda: _plain(_DATA, 1 << 62))
    yield Bomb("buffer of 2^63 - 1", _OUTSIDE, lambda: _plain(_DATA, (1 << 63) - 1))
    yield Bomb("buffer below nothing", _OUTSIDE, lambda: _plain(_DATA, -8))
    yield Bomb("more rows than bytes", _SHORT, lambda: _plain(_ROWS, 1 << 20))
    yield Bomb("more texts than bytes", _SHORT, lambda: _forged_rows(_short_texts(), 1 << 22))
    yield Bomb("more booleans than bytes", _SHORT, lambda: _forged_rows(pa.array([True] * _ROWS), 1 << 24))
    yield Bomb(
        "more nulls than rows",
        "more nulls than rows",
        lambda: patch(stream(_one(pa.array([None] * 33 + [1] * 100))), 33, 1 << 62),
    )
    yield Bomb("a thousand columns, one column's bytes", "two buffers overlap", _shared_bytes)
    yield Bomb("buffers of a view: 2^62", _ARROW, lambda: _view_count(1 << 62))
    yield Bomb("buffers of a view: -1", _ARROW, lambda: _view_count(-1))
    yield Bomb("endless schema", _ARROW, _endless_schema)
    for place in ("schema", "field", "batch"):
        yield Bomb(f"endless metadata of a {place}", _TEXTS, lambda place=place: _endless_metadata(place))  # type: ignore[misc]
    yield Bomb("views under nulls that lead out of their buffer", _ARROW, lambda: stream(_one(_null_views())))
    yield Bomb("deltas of views", "adds to a dictionary", _view_deltas)


BOMBS: Final = (*_rows(), *_compressed(), *_expanding(), *_forged())
