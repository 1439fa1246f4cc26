from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from framewire.arrow import read
from framewire.errors import BadBodyError
from tests.faults.streams import END, parts, stream

LONG = os.environ.get("FRAMEWIRE_LONG") == "1"
ROWS = 400 if LONG else 40
"""Long streams are cut at more than 50,000 places, short ones at some thousands; each has four batches."""


def _numbers() -> pa.Table:
    return pa.table(
        {"a": np.arange(ROWS), "b": np.arange(ROWS) / 7, "c": pa.array([None, 1] * (ROWS // 2), pa.int16())}
    )


def _texts() -> pa.Table:
    texts = [f"text number {i}, longer than a view" for i in range(ROWS)]
    return pa.table({"s": texts, "v": pa.array(texts, pa.string_view())})


def _words() -> pa.Table:
    words = pa.array([f"word {i % 7}" for i in range(ROWS)]).dictionary_encode()
    return pa.table({"w": words, "n": pa.nulls(ROWS)})


def _nested() -> pa.Table:
    rows = [{"l": [i] * (i % 3), "t": {"x": str(i), "y": i}} for i in range(ROWS)]
    return pa.Table.from_pylist(rows)


STREAMS: dict[str, Callable[[], bytes]] = {
    "numbers": lambda: stream(_numbers(), ROWS // 4),
    "texts": lambda: stream(_texts(), ROWS // 4),
    "words": lambda: stream(_words(), ROWS // 4),
    "nested": lambda: stream(_nested(), ROWS // 4),
    "zstd": lambda: stream(_texts(), ROWS // 4, compression="zstd"),
    "polars": lambda: pl.DataFrame({"a": range(ROWS), "b": ["x"] * ROWS}).write_ipc_stream(None).getvalue(),
}


def _accepted(data: bytes, rows: int | None) -> bool:
    try:
        read.decode(pa.py_buffer(data), rows=rows, max_rows=1 << 20, max_bytes=1 << 26, allow_compression=True)
    except BadBodyError:
        return False
    return True


@pytest.mark.parametrize("name", STREAMS)
def test_no_cut_is_accepted(name: str) -> None:
    """At every byte, even where nothing was announced."""
    data = STREAMS[name]()
    assert _accepted(data, ROWS)
    assert [end for end in range(len(data)) if _accepted(data[:end], None)] == []


@pytest.mark.parametrize("name", STREAMS)
def test_no_cut_is_mended_by_an_end_mark(name: str) -> None:
    """Cut between messages and closed properly, a stream is a valid, shorter one: only the announced rows tell."""
    data = STREAMS[name]()
    ends = [part.end for part in parts(data)]
    assert len(ends) > 1
    assert [end for end in ends[:-1] if _accepted(data[:end] + END, ROWS)] == []
    assert _accepted(data[: ends[-1]] + END, ROWS)


def test_the_number_of_cuts(figure: Callable[[str], None]) -> None:
    """What the figures above stand for."""
    cuts = sum(len(build()) for build in STREAMS.values())
    assert cuts > (50_000 if LONG else 5_000)
    figure(f"cuts: {cuts} of {len(STREAMS)} streams, at every byte: 0 accepted where the tests above passed")
