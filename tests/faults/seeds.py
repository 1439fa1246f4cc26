"""Small valid streams of every family of types, to be mutated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import polars as pl
import pyarrow as pa

from framewire import wire
from framewire.arrow import write
from tests.faults.streams import parts, stream

ROWS: Final = 12


@dataclass(frozen=True)
class Seed:
    """A valid stream, and where its parts are.

    Attributes:
        messages: Start and end of each message, its length included.
        metadata: Start and end of each message's length and metadata.
        bodies: Start and end of each body that has bytes.
    """

    name: str
    data: bytes
    rows: int
    compressed: bool
    checksum: str
    messages: tuple[tuple[int, int], ...]
    metadata: tuple[tuple[int, int], ...]
    bodies: tuple[tuple[int, int], ...]


def _every(*values: Any) -> list[Any]:
    """``ROWS`` values, a null among them."""
    return [*(values * ROWS)[: ROWS - 1], None]


def _texts(kind: pa.DataType) -> pa.Table:
    texts = _every("", "short", "a text that is longer than a view", "ünïcödé")
    return pa.table(
        {"x": pa.array(texts, pa.string()).cast(kind), "y": pa.array(["same"] * ROWS, pa.string()).cast(kind)}
    )


def _numbers(*kinds: pa.DataType) -> pa.Table:
    return pa.table({str(kind): pa.array(_every(0, 1, 100), pa.int64()).cast(kind) for kind in kinds})


def _times() -> pa.Table:
    return pa.table(
        {
            "day": pa.array(_every(date(2020, 2, 29))),
            "clock": pa.array(_every(time(23, 59, 59)), pa.time32("ms")),
            "fine": pa.array(_every(time(1, 2, 3)), pa.time64("ns")),
            "at": pa.array(_every(datetime(2020, 1, 1)), pa.timestamp("s")),
            "there": pa.array(_every(datetime(2020, 1, 1)), pa.timestamp("us", "Asia/Tokyo")),
            "for": pa.array(_every(timedelta(1)), pa.duration("ns")),
        }
    )


def _words() -> pa.Table:
    words = pa.array(_every("one", "two", "three"))
    return pa.table(
        {
            "string": words.dictionary_encode(),
            "view": pa.DictionaryArray.from_arrays(
                pa.array([0, 1] * (ROWS // 2), pa.int8()), words[:2].cast(pa.string_view())
            ),
            "number": pa.array(_every(1.5, 2.5)).dictionary_encode(),
        }
    )


def _enums() -> pa.Table:
    words = _every("a", "b")
    frame = pl.DataFrame(
        {"c": pl.Series(words, dtype=pl.Categorical), "e": pl.Series(words, dtype=pl.Enum(["a", "b"]))}
    )
    return frame.to_arrow(compat_level=pl.CompatLevel.newest())


def _lists() -> pa.Table:
    return pa.table(
        {
            "list": pa.array(_every([1], [], [2, None, 3])),
            "large": pa.array(_every(["x"], ["a text that is longer than a view"]), pa.large_list(pa.string_view())),
            "fixed": pa.array(_every([1, 2]), pa.list_(pa.int16(), 2)),
            "deep": pa.array(_every([[[1]]], [[[], [2]]])),
        }
    )


def _structs() -> pa.Table:
    return pa.table(
        {
            "struct": pa.array(_every({"a": 1, "b": "x"}, {"a": None, "b": "y"})),
            "map": pa.array(_every([("k", 1)], [("k", 1), ("l", None)]), pa.map_(pa.string(), pa.int32())),
            "both": pa.array(_every({"l": [{"x": 1.5}]})),
        }
    )


FAMILIES: Final[dict[str, Callable[[], pa.Table]]] = {
    "integers": lambda: _numbers(pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
    "floats": lambda: _numbers(pa.float16(), pa.float32(), pa.float64()),
    "booleans and nulls": lambda: pa.table({"b": pa.array(_every(True, False)), "n": pa.nulls(ROWS)}),
    "decimals": lambda: pa.table({"d": pa.array(_every(Decimal("1.25")), pa.decimal128(38, 10))}),
    "times": _times,
    "string": lambda: _texts(pa.string()),
    "large_string": lambda: _texts(pa.large_string()),
    "string_view": lambda: _texts(pa.string_view()),
    "binary": lambda: pa.table(
        {
            "b": pa.array(_every(b"", b"\xff\x00", b"x" * 40)),
            "l": pa.array(_every(b"", b"\xff"), pa.large_binary()),
            "v": pa.array(_every(b"", b"x" * 40), pa.binary()).cast(pa.binary_view()),
            "f": pa.array(_every(b"abc"), pa.binary(3)),
        }
    ),
    "dictionaries": _words,
    "categoricals and enums": _enums,
    "lists": _lists,
    "structs and maps": _structs,
}


def _seeds() -> Iterator[Seed]:
    for name, build in FAMILIES.items():
        ids = pa.array(range(ROWS), pa.int64())
        table = build()
        table = table.add_column(0, pa.field(wire.ROW_ID, pa.int64(), nullable=False), ids)
        for codec in (None, "zstd", "lz4"):
            # Two batches, since some faults lie between them.
            yield _seed(f"{name}, {codec}", stream(table, ROWS // 2, compression=codec), codec is not None)
        yield _seed(name, b"".join(write.encode(table).parts), False)


def _seed(name: str, data: bytes, compressed: bool) -> Seed:
    found = parts(data)
    return Seed(
        name=name,
        data=data,
        rows=ROWS,
        compressed=compressed,
        checksum=write.checksum([data]),
        messages=tuple((part.start - 8, part.end) for part in found),
        metadata=tuple((part.start - 8, part.body) for part in found),
        bodies=tuple((part.body, part.end) for part in found if part.end > part.body),
    )


SEEDS: Final = tuple(_seeds())
