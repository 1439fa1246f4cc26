from __future__ import annotations

import pyarrow as pa
import pyarrow.ipc
import pytest

from framewire.arrow import read, types, write
from framewire.arrow.read import END_OF_STREAM
from framewire.errors import BadBodyError, TooLargeError

TABLE = pa.table({"_row_id": pa.array(range(1000), pa.int64()), "s": [f"text {i}" for i in range(1000)]})


def _stream(table: pa.Table, chunk: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return bytes(sink.getvalue())


def _decode(data: bytes, rows: int | None = 1000, max_rows: int = 10**6, max_bytes: int = 10**9) -> pa.Table:
    return read.decode(pa.py_buffer(data), rows=rows, max_rows=max_rows, max_bytes=max_bytes)


def test_the_gather_list_is_the_stream_and_shares_the_tables_memory() -> None:
    table = pa.table({"x": pa.array(range(100_000), pa.int64())})
    encoded = write.encode(table)
    whole = b"".join(encoded.parts)
    assert whole == b"".join(encoded.slices(4096))
    assert pa.ipc.open_stream(whole).read_all().equals(table)
    assert encoded.nbytes == len(whole)
    assert encoded.checksum == write.checksum([whole])
    address = table.column(0).chunk(0).buffers()[1].address
    assert any(pa.py_buffer(part).address == address for part in encoded.parts)
    assert all(len(part) <= 4096 + 2 * 16384 for part in encoded.slices(4096))


def test_a_stored_body_is_one_buffer_read_without_a_copy() -> None:
    encoded = write.encode(TABLE)
    buffer = write.gather(encoded.parts, encoded.nbytes)
    assert encoded.checksum == write.checksum([buffer])
    table = read.open_own(buffer)
    assert table.equals(TABLE)
    data = table.column(0).chunk(0).buffers()[1]
    assert buffer.address <= data.address < buffer.address + buffer.size


def test_every_cut_is_refused() -> None:
    data = _stream(TABLE, chunk=100)
    for end in range(0, len(data), 7):
        with pytest.raises(BadBodyError):
            _decode(data[:end])


def test_a_cut_on_a_batch_boundary_is_refused_even_with_an_end_mark() -> None:
    short = _stream(TABLE.slice(0, 400), chunk=100)
    with pytest.raises(BadBodyError, match="400 rows where 1000 were announced"):
        _decode(short)


def test_bytes_after_the_end_are_refused() -> None:
    data = _stream(TABLE)
    with pytest.raises(BadBodyError, match="follow the end"):
        _decode(data + b"\0" * 8 + END_OF_STREAM)


def test_limits() -> None:
    with pytest.raises(TooLargeError, match="more than 999 rows.*FRAMEWIRE_MAX_ROWS"):
        _decode(_stream(TABLE), max_rows=999)
    with pytest.raises(TooLargeError, match="FRAMEWIRE_MAX_BODY_BYTES"):
        _decode(_stream(TABLE), max_bytes=100)


@pytest.mark.parametrize("data", [b"", b"<html>502</html>", b"ARROW1\0\0", END_OF_STREAM])
def test_what_is_no_stream_is_our_error(data: bytes) -> None:
    with pytest.raises(BadBodyError, match="Nothing was kept"):
        _decode(data)


@pytest.mark.parametrize(
    ("dtype", "plain"),
    [
        (pa.string_view(), pa.large_string()),
        (pa.binary_view(), pa.large_binary()),
        (pa.list_(pa.string_view()), pa.list_(pa.large_string())),
        (pa.large_list(pa.string_view()), pa.large_list(pa.large_string())),
        (pa.list_(pa.binary_view(), 2), pa.list_(pa.large_binary(), 2)),
        (pa.struct([("a", pa.string_view())]), pa.struct([("a", pa.large_string())])),
        (pa.map_(pa.string_view(), pa.int8()), pa.map_(pa.large_string(), pa.int8())),
        (pa.dictionary(pa.int8(), pa.string_view()), pa.dictionary(pa.int8(), pa.large_string())),
        (pa.string(), pa.string()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    ],
)
def test_plain_types(dtype: pa.DataType, plain: pa.DataType) -> None:
    assert types.plain_type(dtype) == plain
    assert pa.nulls(1, dtype).cast(plain).type == plain
