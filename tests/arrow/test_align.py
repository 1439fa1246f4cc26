from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.arrow import read, write
from framewire.arrow.align import ALIGNMENT, align
from framewire.arrow.read import decode
from framewire.frame import Form, to_form
from framewire.testing import tables
from tests.faults import streams


def _parts(table: pa.Table, codec: str | None = None, chunk: int | None = None) -> list[memoryview]:
    sink = write._Gather()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.PythonFile(sink, mode="w") as file, pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return sink.parts


def _buffers(array: pa.Array) -> list[pa.Buffer]:
    own = [buffer for buffer in array.buffers() if buffer is not None and buffer.size]
    return own + (_buffers(array.dictionary) if pa.types.is_dictionary(array.type) else [])


@given(tables(), st.sampled_from([None, "lz4", "zstd"]), st.sampled_from([None, 1, 3]))
def test_an_aligned_stream_is_the_same_table(table: pa.Table, codec: str | None, chunk: int | None) -> None:
    parts = _parts(table, codec, chunk)
    data = b"".join(align(parts))
    assert len(data) >= sum(map(len, parts))
    read, plain = (pa.ipc.open_stream(bytes_).read_all() for bytes_ in (data, b"".join(parts)))
    assert read.schema.equals(plain.schema, check_metadata=True)
    assert [str(one) for one in read.columns] == [str(one) for one in plain.columns]
    decoded = decode(
        pa.py_buffer(data),
        rows=table.num_rows,
        max_rows=1 << 20,
        max_bytes=1 << 30,
        allow_compression=codec is not None,
    )
    assert decoded.num_rows == table.num_rows


@given(tables(), st.sampled_from([None, 1, 3]))
def test_every_buffer_lies_at_a_multiple_of_64_bytes(table: pa.Table, chunk: int | None) -> None:
    buffer = write.gather(parts := align(_parts(table, chunk=chunk)), sum(map(len, parts)))
    start = buffer.address
    assert start % ALIGNMENT == 0
    for column in read.open_own(buffer).columns:
        for array in column.chunks:
            assert all((one.address - start) % ALIGNMENT == 0 for one in _buffers(array))


def test_nothing_but_metadata_is_copied() -> None:
    table = pa.table({"x": np.arange(100_000), "y": ["a text longer than a view"] * 100_000})
    encoded = write.encode(table)
    held = {one.address for column in table.columns for one in column.chunk(0).buffers() if one is not None}
    assert held <= {pa.py_buffer(part).address for part in encoded.parts}


@given(tables())
def test_between_the_buffers_lie_zeros(table: pa.Table) -> None:
    data = b"".join(align(_parts(table)))
    bodies = sum(np.count_nonzero(np.frombuffer(data[part.body : part.end], np.uint8)) for part in streams.parts(data))
    # pyarrow's own stream has the same buffers, and zeros between them as well.
    plain = b"".join(_parts(table))
    expected = sum(np.count_nonzero(np.frombuffer(plain[p.body : p.end], np.uint8)) for p in streams.parts(plain))
    assert bodies == expected


def test_polars_takes_decimals_of_a_large_body_without_a_copy() -> None:
    """An odd number of narrow values before them would leave them at a multiple of 8, and Polars would copy them."""
    rows = 40_003
    values = pa.array(np.arange(rows)).cast(pa.decimal128(19, 0))
    table = pa.table({"n": pa.array([1] * rows, pa.int8()), "d": values, "s": ["x" * 13] * rows, "e": values})
    encoded = write.encode(table)
    body = write.gather(encoded.parts, encoded.nbytes)
    frame = to_form(read.open_own(body), Form.POLARS_FRAME)
    assert isinstance(frame, pl.DataFrame)
    for name in ("d", "e"):
        shared: Any = frame.get_column(name).to_arrow()
        assert body.address <= shared.buffers()[1].address < body.address + body.size


def test_a_writer_that_wrote_otherwise_is_noticed() -> None:
    parts = _parts(pa.table({"x": [1, 2, 3]}))
    at = next(i for i, part in enumerate(parts) if len(part) == 24)
    with pytest.raises(AssertionError, match="declared 24"):
        align([*parts[:at], parts[at][:16], parts[at][16:], *parts[at + 1 :]])
