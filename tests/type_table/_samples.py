"""A sample of every kind of value that a tool may return: what the type table is measured with."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import fractions
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["SECTIONS", "Sample", "Section"]


class Sample(NamedTuple):
    """One kind of value.

    Attributes:
        name: As the table names it.
        make: Makes the column: a list of Python values, an Arrow array, a library's own series, or SQL text.
    """

    name: str
    make: Callable[[], Any]


class Section(NamedTuple):
    """Samples that come in by one route.

    Attributes:
        title: As the table names it.
        library: What must be installed, besides framewire itself.
        samples: In the order shown.
    """

    title: str
    library: str
    samples: Sequence[Sample]


class _Colour(enum.Enum):
    RED = "red"


class _Pair(enum.Enum):
    ONE = (1, 2)


_Named = collections.namedtuple("_Named", "a")
_DAY = dt.date(2020, 7, 1)
_NOON = dt.datetime(2020, 7, 1, 12, 30, 0, 123456)
_IST = dt.timezone(dt.timedelta(hours=5, minutes=30))


def _values(name: str, *values: Any) -> Sample:
    return Sample(name, lambda: [*values])


_PYTHON: Final = (
    _values("`None`", None),
    _values("`bool`", True, None),
    _values("`bool` beside `int`", 1, True),
    _values("`int`", -(2**63), None, 2**63 - 1),
    _values("`int` above `int64`", 0, 2**64 - 1),
    _values("`int` above `int64` beside negative ones", -1, 2**63),
    _values("`int` beyond 64 bits", 2**64),
    _values("`float`", 1.5, None, -0.0),
    _values("`int` beside `float`", 2**53, 2.5),
    _values("`int` that no double holds, beside `float`", 2**53 + 1, 2.5),
    _values("`Decimal`", Decimal("1.2"), None, Decimal("1.2345")),
    _values("`int` beside `Decimal`", 2**70, Decimal("0.5")),
    _values("`float` beside `Decimal`", Decimal(1), 1.5),
    _values("`Decimal` of more than 38 digits", Decimal("1" * 40 + ".25")),
    _values('`Decimal("NaN")`', Decimal("NaN")),
    _values("`fractions.Fraction`", fractions.Fraction(1, 3)),
    _values("`str`", "text", None),
    _values("`str` with a lone surrogate", "ok", "a\ud800b"),
    _values("`int` beside `str`", "run", 7),
    _values("`bytes`", b"\xff", None),
    _values("`bytearray`", bytearray(b"\xff")),
    _values("`date`", _DAY, None),
    _values("`datetime`", _NOON, None),
    _values("`date` beside `datetime`", _DAY, _NOON),
    _values("`datetime` with a zone", _NOON.replace(tzinfo=ZoneInfo("Asia/Tokyo"))),
    _values("`datetime` with a fixed offset", _NOON.replace(tzinfo=_IST)),
    _values("`datetime` with and without a zone", _NOON, _NOON.replace(tzinfo=dt.UTC)),
    _values("`datetime` of two zones", _NOON.replace(tzinfo=dt.UTC), _NOON.replace(tzinfo=_IST)),
    _values("`time`", dt.time(1, 2, 3, 4)),
    _values("`time` with a zone", dt.time(1, tzinfo=dt.UTC)),
    _values("`timedelta`", dt.timedelta(-1, 2, 3)),
    _values("`timedelta` beyond 292,471 years", dt.timedelta.max),
    _values("`UUID`", uuid.UUID(int=5)),
    _values("`Enum` of text", _Colour.RED, None),
    _values("`Enum` of something else", _Pair.ONE),
    _values("`list`", [1, None], [], None),
    _values("`tuple`", (1, 2)),
    _values("`list` of several kinds", [1, "x"]),
    _values("`numpy.ndarray`", np.array([1, 2], "i4")),
    _values("`dict`", {"a": 1}, None, {"b": "x"}),
    _values("`dict` beside `str`", {"a": 1}, "n/a"),
    _values("`dict` with keys that are not text", {1: "x"}),
    _values("`set`", {1}),
    _values("named tuple", _Named(1)),
    _values("`complex`", 1j),
    _values("any other object", object()),
    _values("`numpy.int32`", np.int32(1), None),
    _values("`numpy.float32`", np.float32(0.1)),
    _values("`numpy.datetime64[ns]`", np.datetime64(1, "ns")),
    _values("`numpy.datetime64[Y]`", np.datetime64("2020", "Y")),
)


def _array(name: str, values: Any, kind: pa.DataType) -> Sample:
    return Sample(name, lambda: pa.array(values, kind))


def _extension(kind: Any, values: list[Any], storage: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, storage))


def _dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), values)


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_UNITS = ("s", "ms", "us", "ns")

_ARROW: Final = (
    Sample("`null`", lambda: pa.nulls(2)),
    _array("`bool`", [True, None], pa.bool_()),
    *(_array(f"`{kind}`", [1, None], kind) for kind in _INTEGERS),
    *(_array(f"`{kind}`", [-0.0, None], kind) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *(_array(f"`{kind}`", [Decimal("1.25"), None], kind) for kind in (
        pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 2), pa.decimal256(38, 2), pa.decimal256(40, 2),
    )),
    _array("`decimal128(5, -2)`", [Decimal(1200)], pa.decimal128(5, -2)),
    _array("`date32`", [_DAY, None], pa.date32()),
    _array("`date64`", [_DAY, None], pa.date64()),
    _array("`date64` with a time of day", [5], pa.date64()),
    *(_array(f"`{kind}`", [1, None], kind) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))),
    _array("`time64[ns]`", [1000, None], pa.time64("ns")),
    _array("`time64[ns]` with nanoseconds", [1], pa.time64("ns")),
    _array("`time32[s]` of 24:00:00", [86400], pa.time32("s")),
    *(_array(f"`timestamp[{unit}]`", [1000, None], pa.timestamp(unit)) for unit in _UNITS),
    _array("`timestamp[ns]` with nanoseconds", [1], pa.timestamp("ns")),
    _array("`timestamp[s]` beyond milliseconds", [2**62], pa.timestamp("s")),
    _array("`timestamp[us]` after the year 9999", [2**60], pa.timestamp("us")),
    _array("`timestamp[us]` in `Asia/Tokyo`", [1, None], pa.timestamp("us", "Asia/Tokyo")),
    _array("`timestamp[us]` in `+05:30`", [1, None], pa.timestamp("us", "+05:30")),
    _array("`timestamp[us]` in an unknown zone", [1], pa.timestamp("us", "Nowhere/Bad")),
    *(_array(f"`duration[{unit}]`", [1000, None], pa.duration(unit)) for unit in _UNITS),
    *(_array(f"`{kind}`", ["text", None], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    Sample("`string` that is not UTF-8", lambda: pa.array([b"\xff"]).view(pa.string())),
    *(_array(f"`{kind}`", [b"\xff", None], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    _array("`fixed_size_binary[2]`", [b"ab", None], pa.binary(2)),
    _array("`fixed_size_binary[0]`", [b"", None], pa.binary(0)),
    _array("`list`", [[1], None], pa.list_(pa.int8())),
    _array("`large_list`", [[1], None], pa.large_list(pa.int8())),
    _array("`list_view`", [[1], None], pa.list_view(pa.int8())),
    _array("`large_list_view`", [[1], None], pa.large_list_view(pa.int8())),
    _array("`fixed_size_list[2]`", [[1, 2], None], pa.list_(pa.int8(), 2)),
    _array("`fixed_size_list[0]`", [[], None], pa.list_(pa.int8(), 0)),
    _array("`struct`", [{"a": 1}, None], pa.struct([("a", pa.int8())])),
    Sample("`struct` with a name twice", lambda: pa.StructArray.from_arrays([pa.array([1])] * 2, ["a", "a"])),
    _array("`map`", [[("a", 1), ("a", 2)], None], pa.map_(pa.string(), pa.int8())),
    Sample("`dictionary` of text", lambda: _dictionary(pa.array(["a", "never used"]))),
    Sample("`dictionary` of integers", lambda: _dictionary(pa.array([5, 6]))),
    Sample("`dictionary` of lists", lambda: _dictionary(pa.array([[1], [2, 3]]))),
    Sample("`dictionary` of dictionaries", lambda: _dictionary(pa.array(["a", "b"]).dictionary_encode())),
    Sample("`run_end_encoded`", lambda: pc.run_end_encode(pa.array([7, 7, None]))),
    Sample("`arrow.uuid`", lambda: _extension(pa.uuid(), [b"a" * 16, None], pa.binary(16))),
    Sample("`arrow.bool8`", lambda: _extension(pa.bool8(), [1, None], pa.int8())),
    Sample("`arrow.opaque`", lambda: _extension(pa.opaque(pa.binary(), "t", "v"), [b"x"], pa.binary())),
    Sample("union", lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])),
    Sample("`month_day_nano_interval`", lambda: pa.nulls(1, pa.month_day_nano_interval())),
)  # fmt: skip


def _polars(name: str, values: list[Any], dtype: Callable[[Any], Any]) -> Sample:
    def make() -> Any:
        import polars

        return polars.Series(values, dtype=dtype(polars))

    return Sample(name, make)


_POLARS: Final = (
    _polars("`String`", ["text", None], lambda pl: pl.String),
    _polars("`Categorical`", ["a", None], lambda pl: pl.Categorical),
    _polars("`Enum`", ["a", None], lambda pl: pl.Enum(["a", "never used"])),
    _polars("`List(Int64)`", [[1], None], lambda pl: pl.List(pl.Int64)),
    _polars("`Array(Int64, 2)`", [[1, 2], None], lambda pl: pl.Array(pl.Int64, 2)),
    _polars("`Decimal(38, 2)`", [Decimal("1.25"), None], lambda pl: pl.Decimal(38, 2)),
    _polars("`Int128`", [1], lambda pl: pl.Int128),
    _polars("`UInt128`", [1], lambda pl: pl.UInt128),
    _polars("`Object`", [object()], lambda pl: pl.Object),
)


def _pandas(name: str, make: Callable[[Any], Any]) -> Sample:
    def series() -> Any:
        import pandas

        return pandas.Series(make(pandas))

    return Sample(name, series)


_PANDAS: Final = (
    _pandas("`int32`", lambda pd: np.array([1, 2], "i4")),
    _pandas("`>i4` (other byte order)", lambda pd: np.array([1, 2], ">i4")),
    _pandas("`float64` with NaN", lambda pd: np.array([np.nan, 1.5])),
    _pandas("`complex128`", lambda pd: np.array([1j])),
    _pandas("`Int64`", lambda pd: pd.array([2**53 + 1, None], dtype="Int64")),
    _pandas("`boolean`", lambda pd: pd.array([True, None], dtype="boolean")),
    _pandas("`str`", lambda pd: pd.array(["a", None], dtype="str")),
    _pandas("`datetime64[ns]`", lambda pd: np.array([1000, "NaT"], "M8[ns]")),
    _pandas("`datetime64[us, Asia/Tokyo]`",
            lambda pd: pd.to_datetime(["2020-07-01"]).tz_localize("Asia/Tokyo").as_unit("us")),
    _pandas("`datetime64[us, UTC+05:30]`", lambda pd: pd.to_datetime(["2020-07-01T00:00+05:30"]).as_unit("us")),
    _pandas("`timedelta64[us]`", lambda pd: np.array([1, "NaT"], "m8[us]")),
    _pandas("`category`", lambda pd: pd.Categorical(["a", None], ["never used", "a"])),
    _pandas("`Sparse[int]`", lambda pd: pd.arrays.SparseArray([0, 0, 1])),
    _pandas("`object`: text and NaN", lambda pd: pd.Series(["a", np.nan], dtype=object)),
    _pandas("`object`: numbers and NaN", lambda pd: pd.Series([1, np.nan], dtype=object)),
    _pandas("`object`: text and a number", lambda pd: pd.Series(["idle", "run", 7], dtype=object)),
    _pandas("`period`", lambda pd: pd.period_range("2020", periods=1, freq="M")),
    _pandas("`interval`", lambda pd: pd.interval_range(0, 1)),
)  # fmt: skip


def _sql(expression: str, name: str = "") -> Sample:
    return Sample(name or f"`{expression}`", lambda: expression)


_DUCKDB: Final = (
    _sql("1::HUGEINT"),
    _sql("1::UHUGEINT"),
    _sql("1.5::DECIMAL(9, 2)"),
    _sql("'x'::VARCHAR"),
    _sql("'a'::ENUM('a', 'b')"),
    _sql("uuid()", "`UUID`"),
    _sql("'10:00'::TIME"),
    _sql("'24:00'::TIME"),
    _sql("'10:00+02'::TIMETZ"),
    _sql("'2020-07-01'::TIMESTAMP"),
    _sql("'101'::BIT"),
    _sql("INTERVAL 1 MONTH"),
    _sql("union_value(k := 1)", "`UNION`"),
    _sql("MAP {'a': 1}"),
)

SECTIONS: Final = (
    Section("Python values, in rows as dicts", "", _PYTHON),
    Section("pandas", "pandas", _PANDAS),
    Section("Arrow", "", _ARROW),
    Section("Polars", "", _POLARS),
    Section("duckdb", "duckdb", _DUCKDB),
)
"""Every route in and what is sent over it."""
