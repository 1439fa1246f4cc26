"""One column of each type of the wire, three rows and a null, as pyarrow arrays."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

_MOMENTS: Final = [dt.datetime(2024, 3, 1, 12), dt.datetime(2024, 1, 1), None]
_TEXT: Final = ["Oslo", "Lima", None]
_NUMBERS: Final = [2, 1, None]
_TIMES: Final = [dt.time(12), dt.time(6), None]
_SPANS: Final = [dt.timedelta(2), dt.timedelta(1), None]


def _text(dtype: pa.DataType) -> pa.Array:
    values: list[Any] = _TEXT
    if not (pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype)):
        values = [None if text is None else text.encode() for text in _TEXT]
    return pa.array(values, dtype)


def _dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int32()), values.slice(0, 2))


def samples() -> dict[str, pa.Array]:
    """The name of each type of the wire, and a column of it."""
    numbers = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    floats = [pa.float16(), pa.float32(), pa.float64()]
    decimals = [pa.decimal32(9, 2), pa.decimal64(12, 2), pa.decimal128(20, 2), pa.decimal256(30, 2)]
    texts = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
    views = pa.array(_TEXT, pa.string_view())
    days = [dt.date(2024, 3, 1), dt.date(2024, 1, 1), None]
    return {
        "null": pa.nulls(3),
        "bool": pa.array([True, False, None]),
        **{str(dtype): pa.array(_NUMBERS, dtype) for dtype in numbers},
        **{str(dtype): pa.array([1.5, 0.5, None], dtype) for dtype in floats},
        **{
            str(dtype).partition("(")[0]: pa.array([Decimal("1.50"), Decimal("0.25"), None], dtype)
            for dtype in decimals
        },
        **{str(dtype): _text(dtype) for dtype in texts},
        "fixed_size_binary": pa.array([b"abc", b"aaa", None], pa.binary(3)),
        "date32": pa.array(days, pa.date32()),
        "date64": pa.array(days, pa.date64()),
        **{f"time{'32' if unit == 's' else '64'}[{unit}]": pa.array(_TIMES, dtype) for unit, dtype in _times().items()},
        **{f"timestamp[{unit}]": pa.array(_MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
        "timestamp with a zone": pa.array(_MOMENTS, pa.timestamp("us", "Europe/Oslo")),
        **{f"duration[{unit}]": pa.array(_SPANS, pa.duration(unit)) for unit in ("s", "us")},
        "list of int64": pa.array([[2], [1], None], pa.list_(pa.int64())),
        "large_list of string_view": pa.array([["b"], ["a"], None], pa.large_list(pa.string_view())),
        "fixed_size_list": pa.array([[2, 3], [1, 2], None], pa.list_(pa.int64(), 2)),
        "struct": pa.array(
            [{"a": "x", "b": 1}, {"a": "w", "b": 2}, None], pa.struct({"a": pa.string_view(), "b": pa.int8()})
        ),
        "map": pa.array([[("k", 1)], [("j", 2)], None], pa.map_(pa.string_view(), pa.int64())),
        "dictionary of string": _dictionary(pa.array(_TEXT)),
        "dictionary of string_view": _dictionary(views),
        "dictionary of int64": _dictionary(pa.array(_NUMBERS)),
    }


def _times() -> dict[str, pa.DataType]:
    return {"s": pa.time32("s"), "us": pa.time64("us"), "ns": pa.time64("ns")}
