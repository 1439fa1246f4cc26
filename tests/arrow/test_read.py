from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire import wire
from framewire.arrow import read, types, write
from framewire.arrow.expanded import check_expanded
from framewire.arrow.read import Declared
from framewire.errors import BadBodyError, TooLargeError
from framewire.testing import WIRE_KINDS, arrays, schemas, tables
from tests.faults.streams import END, parts, patch, splice, stream

TABLE = pa.table({"a": np.arange(1000), "s": [f"text {i}" for i in range(1000)]})
_GENEROUS = 1 << 30


def _decode(data: bytes, **limits: Any) -> pa.Table:
    given_ = {"max_rows": 1 << 31, "max_bytes": _GENEROUS, "rows": None, "validate": False} | limits
    return read.decode(pa.py_buffer(data), **given_)


def _declared_bytes(data: bytes) -> int:
    declared = Declared(1 << 31, _GENEROUS, allow_compression=True)
    declared.add_stream(pa.py_buffer(data), None)
    return declared.nbytes


# --- what is accepted -------------------------------------------------------------------------------------------------


def test_what_a_stream_declares() -> None:
    data = stream(TABLE.append_column("d", TABLE["s"].combine_chunks().dictionary_encode()), 300)
    table = _decode(data)
    assert (table.num_rows, table.num_columns, table["d"].num_chunks) == (1000, 3, 4)
    assert 8000 < _declared_bytes(data) <= len(data)
    zipped = stream(TABLE, compression="zstd")
    assert _decode(zipped, allow_compression=True) == TABLE
    assert _declared_bytes(zipped) == _declared_bytes(stream(TABLE))


@given(tables(), st.sampled_from([None, 1, 3]))
def test_every_stream_that_is_written_passes(table: pa.Table, chunk: int | None) -> None:
    data = stream(table, chunk)
    ours = b"".join(write.encode(table).parts)
    for written in (data, ours):
        decoded = read.decode(
            pa.py_buffer(written), rows=table.num_rows, max_rows=1000, max_bytes=_GENEROUS, validate=True
        )
        assert decoded.schema == table.schema
        assert decoded.num_rows == table.num_rows


@given(tables(), st.sampled_from(["zstd", "lz4"]))
def test_compressed_streams_pass_where_they_are_allowed(table: pa.Table, codec: str) -> None:
    data = stream(table, compression=codec)
    assert _decode(data, rows=table.num_rows, allow_compression=True).num_rows == table.num_rows
    assert _declared_bytes(data) == _declared_bytes(stream(table))
    if any(part.end > part.body for part in parts(data)):
        with pytest.raises(BadBodyError, match="compressed"):
            _decode(data)


@given(st.lists(arrays(pa.dictionary(pa.int32(), pa.string()), 5), max_size=5))
def test_dictionary_deltas_pass(chunks: list[pa.Array]) -> None:
    table = pa.table({"x": pa.chunked_array(chunks, pa.dictionary(pa.int32(), pa.string()))})
    assert _decode(stream(table, emit_dictionary_deltas=True)).num_rows == table.num_rows


@given(schemas(kinds=WIRE_KINDS))
def test_empty_tables_pass(schema: pa.Schema) -> None:
    empty = pa.Table.from_batches([], schema)
    data = stream(empty)
    assert _decode(data).schema == schema
    assert _declared_bytes(data) == 0


def test_what_polars_writes_passes() -> None:
    frame = pl.DataFrame(
        {
            "i": [1, None, 3],
            "s": ["short", "a text that is longer than a view", None],
            "b": [b"x", None, b"y"],
            "c": pl.Series(["a", "b", None], dtype=pl.Categorical),
            "e": pl.Series(["a", "b", None], dtype=pl.Enum(["a", "b"])),
            "l": [[1], [], None],
            "a": pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int8, 2)),
            "t": [{"x": 1, "y": "z"}, None, {"x": None, "y": "w"}],
            "n": [None, None, None],
            "d": [Decimal("1.25"), None, Decimal("-7.00")],
            "day": [date(2020, 1, 1), None, date(1, 1, 1)],
            "at": [datetime(2020, 1, 1), None, datetime(1999, 1, 1)],
            "for": [timedelta(1), None, timedelta(0)],
            "clock": [time(1), None, time(2)],
        }
    )
    # Parts in a buffer of its own, and a slice whose bitmaps do not begin at a byte.
    for part in (frame, frame.slice(1, 2), pl.concat([frame, frame], rechunk=False)):
        for newest in (True, False):
            level = pl.CompatLevel.newest() if newest else pl.CompatLevel.oldest()
            data = part.write_ipc_stream(None, compat_level=level).getvalue()
            assert _decode(data, rows=part.height).num_rows == part.height
    assert _decode(pl.DataFrame(height=3).write_ipc_stream(None).getvalue()).num_columns == 0


def test_a_zero_column_table_keeps_its_rows() -> None:
    table = _decode(stream(TABLE.select([])))
    assert (table.num_rows, table.num_columns) == (1000, 0)


def test_metadata_is_let_be() -> None:
    field = pa.field("x", pa.int8(), metadata={b"\xff": b"\xff", b"_PL_ENUM_VALUES": b"1;a"})
    table = pa.table({"x": pa.array([1], pa.int8())}, schema=pa.schema([field], metadata={b"\xff": b"\xff"}))
    assert _decode(stream(table)).num_rows == 1
    good = table.cast(pa.schema([field.with_metadata({"k": "v"})], metadata={b"\xff": b"\xff"}))
    assert _decode(stream(good)).num_rows == 1


# --- what is refused --------------------------------------------------------------------------------------------------


def _column(values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"x": pa.array(values, kind) if isinstance(values, list) else values})


REFUSED_TYPES: dict[str, Callable[[], Any]] = {
    "run ends": lambda: pc.run_end_encode(pa.array([1, 1])),
    "list view": lambda: pa.array([[1]], pa.list_view(pa.int8())),
    "large list view": lambda: pa.array([[1]], pa.large_list_view(pa.int8())),
    "interval": lambda: pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "sparse union": lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    "dense union": lambda: pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    ),
    "list of a union": lambda: pa.ListArray.from_arrays(
        pa.array([0, 1], pa.int32()), pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    ),
    "dictionary of lists": lambda: pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[1]])),
    "dictionary of nulls": lambda: pa.DictionaryArray.from_arrays(pa.array([0]), pa.nulls(1)),
    "uuid": lambda: pa.array([uuid.UUID(int=1).bytes], pa.uuid()),
    "json": lambda: pa.array(["{}"], pa.json_()),
}


@pytest.mark.parametrize("name", REFUSED_TYPES)
def test_types_that_do_not_cross(name: str) -> None:
    with pytest.raises(BadBodyError, match="framewire does not carry"):
        _decode(stream(_column(REFUSED_TYPES[name]())))


def _first(data: bytes, old: int, new: int, *, message: int = 1, code: str = "q") -> bytes:
    """The first ``old`` in the metadata of a message made ``new``."""
    part = parts(data)[message]
    before, after = struct.pack(f"<{code}", old), struct.pack(f"<{code}", new)
    assert before in data[part.start : part.body]
    return data[: part.start] + data[part.start :].replace(before, after, 1)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "no end mark"),
        (END, "does not begin with a schema"),
        (b"<html>502</html>", "no end mark"),
        (stream(TABLE)[:-8], "no end mark"),
        (stream(TABLE) + END, "8 bytes follow the end"),
        (stream(TABLE)[:-8] + stream(TABLE), "another version|not a batch|follow the end"),
        (splice(stream(TABLE), 0, 0), "does not begin with a schema"),
        (stream(TABLE, use_legacy_format=True), "no end mark"),
        (stream(TABLE, metadata_version=pa.ipc.MetadataVersion.V4), "another version than V5"),
        (_first(stream(TABLE), 1000, 999), "does not fit|not a valid Arrow stream"),
    ],
)
def test_what_is_no_stream(data: bytes, text: str) -> None:
    with pytest.raises(BadBodyError, match=text):
        _decode(data)


def test_a_compressed_buffer_has_a_length_before_it() -> None:
    data = stream(pa.table({"a": np.arange(1000)}), compression="zstd")
    part = parts(data)[1]
    # The buffer ends in the last eight bytes of the body, whose own length is a multiple of eight.
    body = part.end - part.body
    sizes = [size for size in range(body - 7, body) if struct.pack("<q", size) in data[part.start : part.body]]
    assert len(sizes) == 1
    with pytest.raises(BadBodyError, match="too short"):
        _decode(_first(data, sizes[0], 7), allow_compression=True)


def test_a_buffer_that_was_not_worth_compressing() -> None:
    """It says -1, and holds its bytes as they are."""
    values = np.frombuffer(np.random.default_rng(1).bytes(8000), np.int64)
    data = stream(pa.table({"a": values}), compression="lz4")
    body = parts(data)[1].body
    plain = data[:body] + struct.pack("<q", -1) + values.tobytes() + data[body + 8 + values.nbytes :]
    assert 8000 <= _declared_bytes(plain) < 8100
    table = read.decode(pa.py_buffer(plain), rows=1000, max_rows=1000, max_bytes=10**5, allow_compression=True)
    assert table.column(0).to_numpy().tolist() == values.tolist()


def test_a_delta_needs_a_dictionary() -> None:
    chunks = [pa.array(["a"]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    table = pa.table({"x": pa.chunked_array(chunks)})
    data = stream(table, emit_dictionary_deltas=True)
    assert _decode(data).num_rows == 3
    with pytest.raises(BadBodyError):
        _decode(splice(data, 1, 0))


def test_a_table_before_its_message() -> None:
    data = stream(TABLE)
    start = parts(data)[1].start
    root = start + struct.unpack_from("<I", data, start)[0]
    with pytest.raises(BadBodyError, match="not a valid Arrow stream"):
        _decode(data[:root] + struct.pack("<i", 1 << 20) + data[root + 4 :])


def test_counts_of_buffers_that_make_up_for_each_other() -> None:
    """Two columns of views with 33 and 44 buffers say -1 and 78."""
    views = struct.pack("<i4sii", 16, b"xxxx", 0, 0) * 10
    columns = [
        pa.Array.from_buffers(pa.string_view(), 10, [None, pa.py_buffer(views), *[pa.py_buffer(b"x" * 16)] * count])
        for count in (33, 44)
    ]
    data = stream(pa.table(columns, names=["a", "b"]))
    assert _decode(data).num_columns == 2
    with pytest.raises(BadBodyError, match="not a valid Arrow stream"):
        _decode(patch(patch(data, 33, -1), 44, 78))


@pytest.mark.parametrize("allow_compression", [True, False])
def test_a_batch_of_an_older_version_hides_no_compression(allow_compression: bool) -> None:
    """Arrow 0.17 wrote the codec into a batch's own metadata, and Arrow still reads it there."""
    schema = pa.schema([("x", pa.int64())])
    sinks = [pa.BufferOutputStream(), pa.BufferOutputStream()]
    for sink, version in zip(sinks, (pa.ipc.MetadataVersion.V5, pa.ipc.MetadataVersion.V4), strict=True):
        options = pa.ipc.IpcWriteOptions(metadata_version=version)
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            batch = pa.record_batch([pa.array(np.zeros(100), pa.int64())], schema=schema)
            writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "zstd"})
    new, old = (bytes(sink.getvalue()) for sink in sinks)
    mixed = new[: parts(new)[0].end] + old[parts(old)[0].end :]
    with pytest.raises(BadBodyError, match="another version than V5"):
        _decode(mixed, allow_compression=allow_compression)


@pytest.mark.parametrize("batches", [1, 2])
def test_values_that_look_like_an_end_mark_are_none(batches: int) -> None:
    data = stream(pa.table({"x": pa.array([1, 2, 3, 2**32 - 1] * batches)}), 4)
    cut = data[: parts(data)[0].end + (parts(data)[1].end - parts(data)[1].start) + 8]
    assert cut.endswith(END)
    for rows in (None, 4):
        with pytest.raises(BadBodyError, match="no end mark"):
            _decode(cut, rows=rows)


def test_a_dictionary_of_values_without_bytes() -> None:
    """Each takes no byte, so that a number in the metadata would make a gigabyte of them."""
    values = pa.array([b"", b""], pa.binary(0))
    data = stream(_column(pa.DictionaryArray.from_arrays(pa.array([0, 1]), values)))
    with pytest.raises(BadBodyError, match="dictionary of values that framewire does not carry"):
        _decode(data)


def test_lists_of_fewer_than_no_items() -> None:
    data = stream(pa.table({"x": pa.array([], pa.list_(pa.int8(), 77_777))}))
    with pytest.raises(BadBodyError, match="lists of -5 items"):
        _decode(patch(data, 77_777, -5, message=0, code="i"))


def test_an_arrow_file_is_no_stream() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    with pytest.raises(BadBodyError):
        _decode(bytes(sink.getvalue()))


def test_announced_rows() -> None:
    assert _decode(stream(TABLE, 100), rows=1000).num_rows == 1000
    for rows in (999, 1001):
        with pytest.raises(BadBodyError, match=f"1000 rows where {rows} were announced"):
            _decode(stream(TABLE, 100), rows=rows)


def test_limits_are_met_exactly() -> None:
    data = stream(TABLE, 100)
    _decode(data, max_rows=1000, max_bytes=len(data))
    with pytest.raises(TooLargeError, match="more than 999 rows.*FRAMEWIRE_MAX_ROWS"):
        _decode(data, max_rows=999)
    with pytest.raises(TooLargeError, match=f"{len(data)} bytes.*FRAMEWIRE_MAX_BODY_BYTES"):
        _decode(data, max_bytes=len(data) - 1)


def test_decompressed_bytes_are_bounded_across_batches_and_dictionaries() -> None:
    table = pa.table({"z": np.zeros(10_000), "d": pa.array(["x" * 10_000] * 10_000).dictionary_encode()})
    data = stream(table, 1000, compression="zstd")
    nbytes = _declared_bytes(data)
    assert len(data) < 20_000 < 130_000 < nbytes
    _decode(data, allow_compression=True, max_bytes=nbytes)
    with pytest.raises(TooLargeError, match="once decoded"):
        _decode(data, allow_compression=True, max_bytes=nbytes - 1)


def test_columns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": pa.array([{"a": 1, "b": 2}]), "y": [1]})
    monkeypatch.setattr(wire, "MAX_COLUMNS", 4)
    assert _decode(stream(table)).num_columns == 2
    monkeypatch.setattr(wire, "MAX_COLUMNS", 3)
    with pytest.raises(TooLargeError, match="more than 3 columns"):
        _decode(stream(table))


def test_nesting_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(60):
        kind = pa.list_(kind)
    data = stream(pa.table({"x": pa.array([], kind)}))
    assert _decode(data).num_columns == 1
    monkeypatch.setattr(read, "MAX_DEPTH", 59)
    read._remembered_schema.cache_clear()
    with pytest.raises(BadBodyError, match="deeper than 59 levels"):
        _decode(data)


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_MESSAGES", 10)
    assert _decode(stream(TABLE, 100)).column(0).num_chunks == 10
    with pytest.raises(TooLargeError, match="more than 10 batches"):
        _decode(stream(TABLE, 99))


def test_many_small_batches_are_ours_only_without_empty_ones() -> None:
    empty = pa.array([], pa.int64())
    table = pa.table({"x": pa.chunked_array([empty] * 10_000 + [pa.array([1])])})
    with pytest.raises(TooLargeError, match="without rows"):
        _decode(stream(table))
    assert _decode(b"".join(write.encode(table).parts)).column(0).num_chunks == 1


def test_no_value_is_in_a_message() -> None:
    """Names of columns are; what is in them is not."""
    table = pa.table({"colour": ["secret-value"] * 100})
    data = bytearray(stream(table))
    messages = set()
    for place in range(len(data) - 8):
        changed = data[:place] + b"\xff" + data[place + 1 :]
        try:
            read.decode(pa.py_buffer(bytes(changed)), rows=100, max_rows=100, max_bytes=10**6)
        except (BadBodyError, TooLargeError) as exc:
            messages.add(str(exc))
    assert len(messages) > 5
    assert not [text for text in messages if "secret" in text]


# --- what lies under a null --------------------------------------------------------------------------------------------


def _hidden(kind: pa.DataType, view: tuple[int, int, int, int]) -> pa.Array:
    """Three views, of which the one in the middle lies under a null and is ``view``."""
    good = pa.array(["a text that is longer than a view", None, "short"], pa.string_view())
    views = np.frombuffer(good.buffers()[1], np.int32).copy()
    views[4:8] = view
    return pa.Array.from_buffers(kind, 3, [good.buffers()[0], pa.py_buffer(views), good.buffers()[2]], 1)


def _with_numbers(one: pa.Array) -> pa.Table:
    """Beside enough numbers that the table is validated in threads."""
    numbers = pa.array(np.arange(200_000))
    return pa.table({"x": pa.chunked_array([one, pa.nulls(199_997, one.type)]), "n": numbers})


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("where", ["top", "list", "struct", "dictionary"])
@pytest.mark.parametrize("rows", [3, 200_000])
def test_views_under_nulls_lead_nowhere(kind: pa.DataType, where: str, rows: int) -> None:
    """Arrow's validation skips them, and a process died of one when Polars gathered its column."""

    def table(view: tuple[int, int, int, int]) -> pa.Table:
        one: Any = _hidden(kind, view)
        if where == "list":
            one = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), one)
        elif where == "struct":
            one = pa.StructArray.from_arrays([one], ["x"])
        elif where == "dictionary":
            one = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), one, safe=False)
        return pa.table({"x": pa.chunked_array([one])}) if rows == 3 else _with_numbers(one)

    prefix = int.from_bytes(b"a te", "little")
    for view in ((0, 0, 0, 0), (5, 0, 0, 0), (33, prefix, 0, 0)):
        assert _decode(stream(table(view)), validate=True).num_rows == rows
    for view in ((2130706432, 0, 0, 0), (33, prefix, 0, 1), (33, prefix, 7, 0), (-1, 0, 0, 0)):
        with pytest.raises((BadBodyError, TooLargeError)):
            _decode(stream(table(view)), validate=True)


# --- what values come to ----------------------------------------------------------------------------------------------


@given(tables(kinds={"string", "string_view", "binary_view", "dictionary", "int32"}, max_columns=2))
def test_expanded_bytes_are_at_least_the_texts_written_out(table: pa.Table) -> None:
    total = check_expanded(table, _GENEROUS, stored_bytes=table.nbytes)
    assert total >= table.nbytes
    shown = 0
    for column in table.cast(types.plain_schema(table.schema)).columns:
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        if plain.type in (pa.string(), pa.large_string(), pa.large_binary(), pa.binary()):
            shown += pc.sum(pc.binary_length(plain)).as_py() or 0
    assert total >= shown


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_are_counted_exactly_at_the_bound(kind: pa.DataType) -> None:
    one = pa.array(["x" * 1000], pa.string()).cast(kind)
    views = np.tile(np.frombuffer(one.buffers()[1], np.uint8)[:16], 50)
    shared = pa.table({"x": pa.Array.from_buffers(kind, 50, [None, pa.py_buffer(views), one.buffers()[2]])})
    nbytes = shared.nbytes
    exact = 50 * 16 + 50 * 1000
    assert check_expanded(shared, exact, stored_bytes=nbytes) == exact
    with pytest.raises(TooLargeError, match=f"{exact} bytes once written out, above {exact - 1}"):
        check_expanded(shared, exact - 1, stored_bytes=nbytes)


def test_what_lies_under_a_null_does_not_count() -> None:
    one = pa.array(["x" * 1000], pa.string_view())
    views = pa.py_buffer(bytes(one.buffers()[1])[:16] * 50)
    shown = {}
    for bitmap in (b"\xff" * 7, b"\x03" + bytes(6)):
        array = pa.Array.from_buffers(one.type, 50, [pa.py_buffer(bitmap), views, one.buffers()[2]])
        shown[array.null_count] = array
    held = one.buffers()[2].size
    assert check_expanded(pa.table({"x": shown[48]}), 3000, stored_bytes=held) == max(2000, held)
    with pytest.raises(TooLargeError, match="50000 bytes"):
        check_expanded(pa.table({"x": shown[0]}), 3000, stored_bytes=held)


def test_offsets_that_fall_hide_nothing() -> None:
    """Values are looked at before they are validated: less than nothing is not taken off."""
    offsets = pa.py_buffer(np.array([0, 5000, 0], np.int32))
    words = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"x" * 5000)])
    table = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([0, 1]), words, safe=False)})
    assert check_expanded(table, 10_000, stored_bytes=0) >= 5000
    with pytest.raises(TooLargeError):
        check_expanded(table, 4_000, stored_bytes=0)


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("value", [pa.string(), pa.large_binary(), pa.string_view()])
def test_dictionaries_are_counted_exactly_at_the_bound(index: pa.DataType, value: pa.DataType) -> None:
    words = pa.array(["x" * 1000, "y"]).cast(value)
    codes = pa.array([0] * 50 + [1] * 50 + [None] * 50, index)
    table = pa.table({"x": pa.DictionaryArray.from_arrays(codes, words)})
    exact = 50 * 1000 + 50
    assert check_expanded(table, exact, stored_bytes=0) == exact
    with pytest.raises(TooLargeError):
        check_expanded(table, exact - 1, stored_bytes=0)
    loose = check_expanded(table, _GENEROUS, stored_bytes=0)
    assert exact <= loose == 150 * 1000


def test_a_dictionary_counts_for_every_batch_that_reads_it() -> None:
    words = pa.array([f"{i:0100d}" for i in range(1000)])
    chunks = [pa.DictionaryArray.from_arrays(pa.array([i]), words) for i in range(100)]
    table = pa.table({"x": pa.chunked_array(chunks)})
    with pytest.raises(TooLargeError):
        check_expanded(table, 10_000_000, stored_bytes=len(words) * 104)


def test_most_changes_of_the_metadata_are_noticed() -> None:
    """A byte of metadata that can be anything is one that nobody checks; values are not validated here."""
    data = stream(pa.table({"a": pa.array([1, None, 3]), "s": ["x", "yy", None]}))
    part = parts(data)[1]
    seen = 0
    for place in range(part.start, part.body):
        try:
            _decode(data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :], rows=3)
        except (BadBodyError, TooLargeError):
            seen += 1
    # What is left: paddings, offsets of empty bitmaps, and vtables' slack.
    assert seen > 0.6 * (part.body - part.start)
