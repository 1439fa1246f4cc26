"""Python values to Arrow: each kind exact, or refused by column, row and kind."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal as D
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.errors import ColumnNameError, NotATableError, UnsupportedValueError
from framewire.values.infer import infer_column, infer_rows

dateutil_tz: Any = pytest.importorskip("dateutil.tz")  # its zones are not hashable; pandas brings it

BERLIN, TOKYO = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")
IST = dt.timezone(dt.timedelta(hours=5, minutes=30))
DAY = dt.datetime(2020, 7, 1, 12, 30, 0, 123456)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Pair(enum.Enum):
    ONE = (1, 2)


class Text(str):
    """Lies about itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "altered"


class Int(int):
    def __int__(self) -> int:
        return 99


@dataclasses.dataclass
class Point:
    x: int


Named = collections.namedtuple("Named", "a b")

EXACT: list[tuple[str, Sequence[Any], pa.DataType, list[Any]]] = [
    ("nothing", [], pa.null(), []),
    ("nulls", [None, pd.NA, pd.NaT], pa.null(), [None, None, None]),
    ("bools", [True, None, np.bool_(False)], pa.bool_(), [True, None, False]),
    ("ints", [1, None, -(2**63), 2**63 - 1], pa.int64(), [1, None, -(2**63), 2**63 - 1]),
    ("large ints", [0, 2**64 - 1], pa.uint64(), [0, 2**64 - 1]),
    ("lying int", [Int(5)], pa.int64(), [5]),
    ("floats", [1.5, -0.0, math.inf], pa.float64(), [1.5, -0.0, math.inf]),
    ("late float", [1] * 200 + [2.9], pa.float64(), [1.0] * 200 + [2.9]),
    ("exact ints beside floats", [2**60, 2**53, 0.5], pa.float64(), [2.0**60, 2.0**53, 0.5]),
    ("decimals", [D("1.2")] * 3 + [D("1.2345"), D("100")], pa.decimal128(7, 4), [D("1.2")] * 3 + [D("1.2345"), D(100)]),
    ("decimals with exponents", [D("1E+5"), D("1E-3")], pa.decimal128(9, 3), [D(100000), D("0.001")]),
    ("38 digits", [D("9" * 38)], pa.decimal128(38, 0), [D("9" * 38)]),
    ("ints beside decimals", [2**70, D("0.5")], pa.decimal128(23, 1), [D(2**70), D("0.5")]),
    ("text", ["a", None, "é\0"], pa.large_string(), ["a", None, "é\0"]),
    ("lying text", [Text("a"), np.str_("b")], pa.large_string(), ["a", "b"]),
    ("uuids", [uuid.UUID(int=5)], pa.large_string(), [str(uuid.UUID(int=5))]),
    ("text enums", [Colour.RED, None, Colour.BLUE], pa.large_string(), ["red", None, "blue"]),
    ("int enums", [Level.LOW, 2], pa.int64(), [1, 2]),
    ("bytes", [b"\xff", bytearray(b"b"), memoryview(b"c")], pa.large_binary(), [b"\xff", b"b", b"c"]),
    ("dates", [dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("numpy dates", [np.datetime64("2020-01-01"), None], pa.date32(), [dt.date(2020, 1, 1), None]),
    ("times", [dt.time(1, 2, 3, 4)], pa.time64("us"), [dt.time(1, 2, 3, 4)]),
    ("datetimes", [DAY, None, dt.datetime.min], pa.timestamp("us"), [DAY, None, dt.datetime.min]),
    ("pandas times", [pd.Timestamp(DAY), DAY, pd.NaT], pa.timestamp("us"), [DAY, DAY, None]),
    ("one zone", [DAY.replace(tzinfo=BERLIN)], pa.timestamp("us", "Europe/Berlin"), [DAY.replace(tzinfo=BERLIN)]),
    ("fixed offset", [DAY.replace(tzinfo=IST)], pa.timestamp("us", "UTC"), [DAY.replace(tzinfo=IST)]),
    ("two forms of UTC", [DAY.replace(tzinfo=dt.UTC), DAY.replace(tzinfo=dateutil_tz.UTC)], pa.timestamp("us", "UTC"),
     [DAY.replace(tzinfo=dt.UTC)] * 2),
    ("numpy times", [np.datetime64("2020-01-01T00:00:00", "s")], pa.timestamp("s"), [dt.datetime(2020, 1, 1)]),
    ("numpy times of two units", [np.datetime64(1, "s"), np.datetime64(1, "ms")], pa.timestamp("us"),
     [dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1000)]),
    ("no numpy times", [np.datetime64("NaT")], pa.timestamp("us"), [None]),
    ("durations", [dt.timedelta(-1, 2, 3), None], pa.duration("us"), [dt.timedelta(-1, 2, 3), None]),
    ("numpy durations", [np.timedelta64(5, "ms")], pa.duration("ms"), [dt.timedelta(milliseconds=5)]),
    ("numpy days", [np.timedelta64(2, "D"), np.timedelta64("NaT")], pa.duration("us"), [dt.timedelta(2), None]),
    ("numpy ints", [np.int32(1), None], pa.int32(), [1, None]),
    ("numpy ints of two widths", [np.int8(1), np.uint64(2), 3], pa.int64(), [1, 2, 3]),
    ("numpy floats", [np.float32(0.5), None], pa.float32(), [0.5, None]),
    ("lists", [[1], [], None, (2, None)], pa.large_list(pa.int64()), [[1], [], None, [2, None]]),
    ("arrays", [np.array([1, 2], "i4"), None], pa.large_list(pa.int32()), [[1, 2], None]),
    ("empty lists", [[], [[]]], pa.large_list(pa.large_list(pa.null())), [[], [[]]]),
    ("late types in lists", [[], [1], [2.5]], pa.large_list(pa.float64()), [[], [1.0], [2.5]]),
    ("dicts", [{"b": 1}, None, {"a": "x"}], pa.struct([("b", pa.int64()), ("a", pa.large_string())]),
     [{"b": 1, "a": None}, None, {"b": None, "a": "x"}]),
    ("other mappings", [collections.OrderedDict(a=1), {"a": 2}], pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": 2}]),
    ("empty dicts", [{}, None], pa.struct([]), [{}, None]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "kind", "expected"), [case[1:] for case in EXACT], ids=[case[0] for case in EXACT])
@pytest.mark.parametrize("leading_nulls", [0, 5000])
def test_exact(values: Sequence[Any], kind: pa.DataType, expected: list[Any], leading_nulls: int) -> None:
    # The same rule whatever comes before, in both routes: by column, and by rows in blocks.
    values, expected = [None] * leading_nulls + list(values), [None] * leading_nulls + expected
    for array in (infer_column(values, "x"), infer_rows([{"x": value} for value in values or [None]])["x"]):
        array.validate(full=True)
        if values:
            assert array.type == kind
            assert array.to_pylist() == expected


def test_signs_and_nan_survive() -> None:
    zero, nan = infer_column([-0.0, math.nan], "x").to_pylist()
    assert math.copysign(1, zero) == -1
    assert math.isnan(nan)
    zero, nan, _ = infer_column([np.float32(-0.0), np.float32(math.nan), None], "x").to_pylist()
    assert math.copysign(1, zero) == -1
    assert math.isnan(nan)


def test_nanoseconds_survive() -> None:
    stamp = pd.Timestamp("2020-07-01T12:30:00.123456789", tz="Europe/Berlin")
    array = infer_column([stamp, DAY.replace(tzinfo=BERLIN)], "x")
    assert array.type == pa.timestamp("ns", "Europe/Berlin")
    assert array.cast(pa.int64()).to_pylist()[0] == stamp.value
    assert infer_column([np.datetime64(1, "ns"), None], "x").cast(pa.int64()).to_pylist() == [1, None]
    assert infer_column([pd.Timedelta(1, "ns"), dt.timedelta(0)], "x").cast(pa.int64()).to_pylist() == [1, 0]
    assert infer_column([pd.Timedelta(1, "us")], "x").type == pa.duration("us")


def test_skipped_and_repeated_hours_cross_as_instants() -> None:
    skipped = dt.datetime(2021, 3, 28, 2, 30, tzinfo=BERLIN)
    assert infer_column([skipped], "x")[0].as_py().astimezone(dt.UTC) == skipped.astimezone(dt.UTC)
    twice = dt.datetime(2020, 10, 25, 2, 30, tzinfo=BERLIN)
    first, second = infer_column([twice, twice.replace(fold=1)], "x").cast(pa.int64()).to_pylist()
    assert second - first == 3600 * 10**6


class Nameless(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta | None:
        return None if when is None else dt.timedelta(hours=1)

    def dst(self, when: dt.datetime | None) -> None:
        return None

    def tzname(self, when: dt.datetime | None) -> str:
        return "nobody's"


OWN: dict[str, Any] = {}
OWN["self"] = OWN

REFUSED: list[tuple[str, Sequence[Any], str, int, str]] = [
    # name, values, path, row, words of the message
    ("bool beside int", [1, True], "x", 1, "bool in a column of int"),
    ("late int beside bools", [True] * 200 + [7], "x", 200, "int in a column of bool"),
    ("numpy bool beside int", [np.bool_(True), 2], "x", 1, "int in a column of numpy.bool"),
    ("inexact int beside float", [0.5, 2**53 + 1], "x", 1, "no float64 holds exactly"),
    ("huge int beside float", [0.5, 10**400], "x", 1, "no float64 holds exactly"),
    ("int beyond 64 bits", [1, 2**64], "x", 1, "beyond 64 bits"),
    ("low int beyond 64 bits", [1, -(2**63) - 1], "x", 1, "beyond 64 bits"),
    ("large beside negative", [-1, 2**63], "x", 1, "above int64 beside negative"),
    ("late text", [1] * 9000 + ["n/a"], "x", 9000, "str in a column of int"),
    ("nan beside text", ["a", math.nan], "x", 1, "float in a column of str"),
    ("far apart decimals", [D("1E+31"), D("9.9E-46")], "x", 1, "79 digits"),
    ("wide decimal", [D(1), D("1" * 40 + ".25")], "x", 1, "42 digits"),
    ("together too wide", [D("1" * 38), D("0.1")], "x", 1, "39 digits"),
    ("tiny decimal", [D("1E-50")], "x", 0, "50 digits"),
    ("decimal NaN", [D(1), D("NaN")], "x", 1, "not finite"),
    ("decimal infinity", [D("-Infinity")], "x", 0, "not finite"),
    ("float beside decimal", [D(1), 1.5], "x", 1, "float in a column of decimal.Decimal"),
    ("three numbers", [1, 1.5, D(2)], "x", 2, "decimal.Decimal in a column of float"),
    ("surrogate", ["ok", "a\ud800b"], "x", 1, "lone surrogate"),
    ("date beside datetime", [dt.date(2020, 1, 1), DAY], "x", 1, "datetime.datetime in a column of datetime.date"),
    ("numpy date beside datetime", [DAY, np.datetime64("2020-01-01")], "x", 1, "a date beside datetimes"),
    ("naive beside aware", [DAY, DAY.replace(tzinfo=BERLIN)], "x", 1, "with and without time zone"),
    ("two zones", [DAY.replace(tzinfo=BERLIN), DAY.replace(tzinfo=TOKYO)], "x", 1, "different time zones"),
    ("two offsets", [DAY.replace(tzinfo=dt.UTC), DAY.replace(tzinfo=IST)], "x", 1, "different time zones"),
    ("nameless zone", [DAY.replace(tzinfo=Nameless())], "x", 0, "time zone without a name"),
    ("too far for nanoseconds", [dt.datetime(1, 1, 1), pd.Timestamp(1, unit="ns")], "x", 0, "outside the range"),
    ("too long", [dt.timedelta.max], "x", 0, "outside the range"),
    ("time with zone", [dt.time(1, tzinfo=dt.UTC)], "x", 0, "a time with a time zone"),
    ("numpy years", [np.datetime64("2020", "Y")], "x", 0, "a unit without a form"),
    ("numpy picoseconds", [np.datetime64(1, "ps")], "x", 0, "a unit without a form"),
    ("numpy months", [np.timedelta64(1, "M")], "x", 0, "a unit without a form"),
    ("set", [{1}], "x", 0, "set has no form"),
    ("object", [object()], "x", 0, "object has no form"),
    ("function", [len], "x", 0, "builtin_function_or_method has no form"),
    ("complex", [1j], "x", 0, "complex has no form"),
    ("dataclass", [Point(1)], "x", 0, "Point has no form"),
    ("named tuple", [Named(1, 2)], "x", 0, "Named has no form"),
    ("range", [range(3)], "x", 0, "range has no form"),
    ("period", [pd.Period("2020")], "x", 0, "Period has no form"),
    ("long double", [np.longdouble(1)], "x", 0, "longdouble has no form"),
    ("masked array", [np.ma.array([1])], "x", 0, "MaskedArray has no form"),
    ("array without dimension", [np.array(5)], "x", 0, "cannot be read"),
    ("enum of tuples", [Pair.ONE], "x", 0, "enum member whose value is a tuple"),
    ("struct beside text", [{"a": 1}, "n/a"], "x", 1, "str in a column of dict"),
    ("deep in a struct", [None, {"a": {"b": 1}}, {"a": {"b": "x"}}], "x.a.b", 2, "str in a column of int"),
    ("deep in a list", [[1], [], None, [2, "x"]], "x[]", 3, "str in a column of int"),
    ("list in a struct in a list", [[], [{"l": [1]}, {"l": [{2}]}]], "x[].l[]", 1, "set has no form"),
    ("list beside scalar", [{"a": [1]}, {"a": 1}], "x.a", 1, "int in a column of list"),
    ("key that is no text", [{"a": 1}, {2: 1}], "x", 1, "a key of type int"),
    ("key with NUL", [{"a\0": 1}], "x", 0, "NUL"),
    ("a dict in itself", [OWN], "x" + ".self" * 60, 0, "nested deeper than 60"),
]


@pytest.mark.parametrize(
    ("values", "path", "row", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_refused_by_column_row_and_kind(values: Sequence[Any], path: str, row: int, words: str) -> None:
    for by_row in (False, True):
        with pytest.raises(UnsupportedValueError) as caught:
            infer_rows([{"x": value} for value in values]) if by_row else infer_column(values, "x")
        error = caught.value
        assert error.message.startswith(f"Column {path!r}, row {row}: ")
        assert words in error.message
        assert error.details["column"] == path
        assert error.details["row"] == row
        assert error.details["kind"]
        assert error.hint


def test_a_refusal_does_not_show_the_value() -> None:
    secret = "4111-1111-1111-1111"
    for values in ([1, secret], [secret, "\ud800" + secret], [{"a": secret}, secret], [Named(secret, 1)]):
        with pytest.raises(UnsupportedValueError) as caught:
            infer_column(values, "card")
        assert secret not in str(caught.value)


@pytest.mark.parametrize("count", [1, 4096, 4097, 9000])
def test_rows_keep_all_keys_in_first_seen_order(count: int) -> None:
    table = infer_rows([{"sku": n} for n in range(count)] + [{"note": "late", "sku": count}])
    assert table.column_names == ["sku", "note"]
    assert table["sku"].to_pylist() == list(range(count + 1))
    assert table["note"].to_pylist() == [None] * count + ["late"]


def test_rows_with_the_same_number_of_other_keys() -> None:
    rows = [{"a": 1, "b": 2}] * 5000 + [{"b": 3, "c": 4}]
    assert infer_rows(rows).slice(4999).to_pylist() == [{"a": 1, "b": 2, "c": None}, {"a": None, "b": 3, "c": 4}]


def test_late_large_integers_and_first_seen_types() -> None:
    table = infer_rows([{"a": 1, "b": None, "c": "x"}] * 5000 + [{"a": 2**63, "b": b"y", "c": None}])
    assert [field.type for field in table.schema] == [pa.uint64(), pa.large_binary(), pa.large_string()]
    assert table.slice(5000).to_pylist() == [{"a": 2**63, "b": b"y", "c": None}]


@pytest.mark.parametrize("rows", [[], [{}], [{}, {}, {}], ({},)])
def test_rows_without_columns_keep_their_count(rows: Sequence[Any]) -> None:
    assert infer_rows(rows).num_rows == len(rows)
    assert infer_rows(rows).num_columns == 0


def test_other_row_types_are_read_and_not_changed() -> None:
    default: collections.defaultdict[str, int] = collections.defaultdict(int, a=1)
    assert infer_rows([default, {"b": 2}]).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    assert dict(default) == {"a": 1}
    assert infer_rows(collections.deque([{"a": 1}])).num_rows == 1


@pytest.mark.parametrize("row", [None, 1, "a", (1, 2), Point(1), Named(1, 2)])
def test_rows_that_are_no_dicts(row: Any) -> None:
    with pytest.raises(NotATableError, match="Row 1 is of type"):
        infer_rows([{"a": 1}, row])


@pytest.mark.parametrize("key", [1, None, ("a", "b"), "\ud800"])
def test_keys_that_are_no_text(key: Any) -> None:
    with pytest.raises(ColumnNameError):
        infer_rows([{"a": 1}, {key: 1}])


MIN, MAX = dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)  # a day inside, or no zone could show them
AWARE: Any = st.sampled_from([None, dt.UTC, BERLIN, TOKYO, IST])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(), st.decimals(), st.text(st.characters()),
    st.binary(), st.dates(), st.times(), st.timedeltas(), st.uuids(),
    st.datetimes(MIN, MAX, timezones=AWARE),
    st.sampled_from([np.int8(1), np.float32(0.1), np.datetime64(1, "ns"), pd.NaT, Colour.RED, pd.Timestamp(5)]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


def _is_same(given_: Any, back: Any) -> bool:
    """Whether ``back`` is ``given_``, by the written rule and nothing else."""
    if given_ is None or given_ is pd.NaT:
        return back is None
    if isinstance(given_, enum.Enum):
        return bool(back == given_.value)
    if isinstance(given_, uuid.UUID):
        return bool(back == str(given_))
    if isinstance(given_, dict):
        return set(given_) <= set(back) and all(_is_same(given_.get(key), value) for key, value in back.items())
    if isinstance(given_, list):
        return len(given_) == len(back) and all(map(_is_same, given_, back))
    if isinstance(given_, bool) or isinstance(back, bool):
        return given_ is back
    if isinstance(given_, (float, np.floating)):
        return bool(back == given_) or (math.isnan(given_) and math.isnan(back))
    if isinstance(given_, np.datetime64):
        return bool(pd.Timestamp(back) == pd.Timestamp(given_))
    if isinstance(given_, dt.datetime):
        if given_.tzinfo is None or back.tzinfo is None:
            return bool(back == given_) and back.tzinfo is given_.tzinfo
        # The instant crosses: a wall time that the zone skips comes back as the one that its clocks showed.
        return bool(back.astimezone(dt.UTC) == given_.astimezone(dt.UTC))
    if isinstance(given_, dt.date):
        return type(back) is dt.date and back == given_
    return bool(back == given_)


@given(st.one_of(st.lists(VALUES, max_size=6), *(st.lists(kind | st.none(), max_size=6) for kind in (
    st.integers(-(2**65), 2**65), st.floats(), st.decimals(), st.text(), st.datetimes(MIN, MAX, timezones=AWARE),
    st.timedeltas(),
    st.integers() | st.floats(), st.integers() | st.decimals(allow_nan=False), st.lists(VALUES, max_size=3),
))))  # fmt: skip
def test_exact_or_refused(values: list[Any]) -> None:
    try:
        array = infer_column(values, "x")
    except UnsupportedValueError as error:
        names_a_row = 0 <= error.details["row"] < len(values)
    else:
        names_a_row = True
        array.validate(full=True)
        assert len(array) == len(values)
        assert all(map(_is_same, values, array.to_pylist()))
        assert infer_rows([{"x": value} for value in values]).num_rows == len(values)
    assert names_a_row
