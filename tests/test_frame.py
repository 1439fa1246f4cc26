"""Each Arrow type in each of the six forms: exact, or refused by name."""

from __future__ import annotations

import datetime as dt
import decimal
import subprocess
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypedDict
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from framewire.arrow.types import plain_type
from framewire.errors import BadBodyError, S2SPError, UnsupportedTypeError, UnsupportedValueError
from framewire.frame import FORMS, Form, form_of, to_form

D = decimal.Decimal
TOKYO = ZoneInfo("Asia/Tokyo")
REFUSED = "refused"


def stored(values: Iterable[int | None], type_: pa.DataType) -> pa.Array:
    """An array of a temporal type from the integers that it stores."""
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    return pa.array(list(values), width).view(type_)


def coded(dictionary: pa.Array, codes: Iterable[int | None] = (0, 1, 0), index: pa.DataType | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(list(codes), index or pa.int32()), dictionary)


class Case:
    """One array; what Polars (its type, and the values as Arrow of `polars_as`) and Python make of it."""

    def __init__(self, array: Any, polars: Any, python: Any, polars_as: pa.DataType = None) -> None:
        self.array, self.polars, self.python, self.polars_as = array, polars, python, polars_as


INTEGERS = {
    str(type_): Case(pa.array([low, high, None], type_), polars, [low, high, None])
    for type_, polars, low, high in [
        (pa.int8(), pl.Int8, -(2**7), 2**7 - 1),
        (pa.int16(), pl.Int16, -(2**15), 2**15 - 1),
        (pa.int32(), pl.Int32, -(2**31), 2**31 - 1),
        (pa.int64(), pl.Int64, -(2**63), 2**63 - 1),
        (pa.uint8(), pl.UInt8, 0, 2**8 - 1),
        (pa.uint16(), pl.UInt16, 0, 2**16 - 1),
        (pa.uint32(), pl.UInt32, 0, 2**32 - 1),
        (pa.uint64(), pl.UInt64, 0, 2**64 - 1),
    ]
}
PLAIN = {
    "null": Case(pa.nulls(2), pl.Null, [None, None]),
    "bool": Case(pa.array([True, False, None]), pl.Boolean, [True, False, None]),
    "float16": Case(
        pa.array(np.array([1.5, 6e-8, -0.0], np.float16)), pl.Float16, [1.5, float(np.float16(6e-8)), -0.0]
    ),
    "float32": Case(pa.array([1.5, -0.0, None], pa.float32()), pl.Float32, [1.5, -0.0, None]),
    "float64": Case(pa.array([0.1, float("inf"), None]), pl.Float64, [0.1, float("inf"), None]),
    "string": Case(pa.array(["é", "", None]), pl.String, ["é", "", None], pa.large_string()),
    "large_string": Case(pa.array(["é", None], pa.large_string()), pl.String, ["é", None]),
    "string_view": Case(pa.array(["a" * 40, None], pa.string_view()), pl.String, ["a" * 40, None], pa.large_string()),
    "binary": Case(pa.array([b"\x00\xff", None]), pl.Binary, [b"\x00\xff", None], pa.large_binary()),
    "large_binary": Case(pa.array([b"a", None], pa.large_binary()), pl.Binary, [b"a", None]),
    "binary_view": Case(pa.array([b"a" * 40, None], pa.binary_view()), pl.Binary, [b"a" * 40, None], pa.large_binary()),
    "fixed_size_binary": Case(pa.array([b"ab", None], pa.binary(2)), pl.Binary, [b"ab", None], pa.large_binary()),
    "fixed_size_binary(0)": Case(pa.array([b"", None], pa.binary(0)), pl.Binary, [b"", None], pa.large_binary()),
}
DECIMALS = {
    "decimal32": Case(pa.array([D("1.25")], pa.decimal32(5, 2)), pl.Decimal(5, 2), [D("1.25")], pa.decimal128(5, 2)),
    "decimal64": Case(pa.array([D("1.25")], pa.decimal64(12, 2)), pl.Decimal(12, 2), [D("1.25")], pa.decimal128(12, 2)),
    "decimal128": Case(pa.array([D("0." + "1" * 38)]), pl.Decimal(38, 38), [D("0." + "1" * 38)]),
    "negative scale": Case(
        pa.array([D("1200"), None], pa.decimal128(5, -2)), pl.Decimal(7, 0), [D("1.2E+3"), None], pa.decimal128(7, 0)
    ),
    "negative scale, wide": Case(pa.array([D("1E+30")], pa.decimal128(30, -20)), REFUSED, [D("1.0000000000E+30")]),
    "decimal256, 38 digits": Case(
        pa.array([D("12.50"), None], pa.decimal256(38, 2)), pl.Decimal(38, 2), [D("12.50"), None], pa.decimal128(38, 2)
    ),
    "decimal256, 39 digits": Case(pa.array([D("1")], pa.decimal256(39, 2)), REFUSED, [D("1.00")]),
}
TIMES = {
    "date32": Case(pa.array([dt.date(2013, 1, 1), None]), pl.Date, [dt.date(2013, 1, 1), None]),
    "date32, year 12923": Case(stored([4_000_000], pa.date32()), pl.Date, UnsupportedValueError),
    "date64": Case(
        pa.array([dt.date(2013, 1, 1), None], pa.date64()), pl.Date, [dt.date(2013, 1, 1), None], pa.date32()
    ),
    "date64, no whole day": Case(stored([86_400_005], pa.date64()), UnsupportedValueError, UnsupportedValueError),
    "time32[s]": Case(stored([5, None], pa.time32("s")), pl.Time, [dt.time(0, 0, 5), None], pa.time64("ns")),
    "time32[ms]": Case(stored([86_399_999], pa.time32("ms")), pl.Time, [dt.time(23, 59, 59, 999000)], pa.time64("ns")),
    "time64[us]": Case(stored([5, None], pa.time64("us")), pl.Time, [dt.time(0, 0, 0, 5), None], pa.time64("ns")),
    "time64[ns]": Case(stored([5000, None], pa.time64("ns")), pl.Time, [dt.time(0, 0, 0, 5), None]),
    "time64[ns], below a microsecond": Case(stored([5], pa.time64("ns")), pl.Time, UnsupportedValueError),
    "time64, 24:00": Case(stored([86_400 * 10**9], pa.time64("ns")), UnsupportedValueError, UnsupportedValueError),
    "time32, negative": Case(stored([-1], pa.time32("s")), UnsupportedValueError, UnsupportedValueError),
    "timestamp[s]": Case(
        stored([5, -5, None], pa.timestamp("s")),
        pl.Datetime("ms"),
        [dt.datetime(1970, 1, 1, 0, 0, 5), dt.datetime(1969, 12, 31, 23, 59, 55), None],
        pa.timestamp("ms"),
    ),
    "timestamp[s], beyond ms": Case(
        stored([2**63 // 1000 + 1], pa.timestamp("s")), UnsupportedValueError, UnsupportedValueError
    ),
    "timestamp[ms]": Case(stored([5], pa.timestamp("ms")), pl.Datetime("ms"), [dt.datetime(1970, 1, 1, 0, 0, 0, 5000)]),
    "timestamp[us]": Case(
        stored([-1], pa.timestamp("us")), pl.Datetime("us"), [dt.datetime(1970, 1, 1) - dt.timedelta(0, 0, 1)]
    ),
    "timestamp[us], year 144169": Case(stored([2**62], pa.timestamp("us")), pl.Datetime("us"), UnsupportedValueError),
    "timestamp[ns]": Case(
        stored([5000, None], pa.timestamp("ns")), pl.Datetime("ns"), [dt.datetime(1970, 1, 1, 0, 0, 0, 5), None]
    ),
    "timestamp[ns], below a microsecond": Case(
        stored([5], pa.timestamp("ns")), pl.Datetime("ns"), UnsupportedValueError
    ),
    "timestamp[us, zone]": Case(
        stored([5, None], pa.timestamp("us", "Asia/Tokyo")),
        pl.Datetime("us", "Asia/Tokyo"),
        [dt.datetime(1970, 1, 1, 9, 0, 0, 5, tzinfo=TOKYO), None],
    ),
    "timestamp[ns, zone]": Case(
        stored([5000], pa.timestamp("ns", "UTC")),
        pl.Datetime("ns", "UTC"),
        [dt.datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=ZoneInfo("UTC"))],
    ),
    "timestamp[us, -08:00]": Case(
        stored([0], pa.timestamp("us", "-08:00")),
        pl.Datetime("us", "Etc/GMT+8"),
        [dt.datetime(1969, 12, 31, 16, tzinfo=dt.timezone(dt.timedelta(hours=-8)))],
        pa.timestamp("us", "Etc/GMT+8"),
    ),
    "timestamp[us, +05:30]": Case(
        stored([0], pa.timestamp("us", "+05:30")),
        REFUSED,
        [dt.datetime(1970, 1, 1, 5, 30, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30)))],
    ),
    "timestamp, a NUL in the zone": Case(stored([0], pa.timestamp("us", "UTC\0x")), REFUSED, UnsupportedValueError),
    "timestamp, no such zone": Case(stored([0], pa.timestamp("us", "Mars/Base")), REFUSED, UnsupportedValueError),
    "duration[s]": Case(
        stored([-5, None], pa.duration("s")), pl.Duration("ms"), [dt.timedelta(0, -5), None], pa.duration("ms")
    ),
    "duration[s], beyond ms": Case(stored([2**60], pa.duration("s")), UnsupportedValueError, UnsupportedValueError),
    "duration[ms]": Case(stored([5], pa.duration("ms")), pl.Duration("ms"), [dt.timedelta(0, 0, 5000)]),
    "duration[us]": Case(stored([-5], pa.duration("us")), pl.Duration("us"), [dt.timedelta(0, 0, -5)]),
    "duration[ns]": Case(stored([5000], pa.duration("ns")), pl.Duration("ns"), [dt.timedelta(0, 0, 5)]),
    "duration[ns], below a microsecond": Case(
        stored([-1], pa.duration("ns")), pl.Duration("ns"), UnsupportedValueError
    ),
}
MAP = pa.map_(pa.string(), pa.int64())
NESTED = {
    "list": Case(pa.array([[1, None], None, []]), pl.List(pl.Int64), [[1, None], None, []], pa.large_list(pa.int64())),
    "large_list": Case(pa.array([[1], None], pa.large_list(pa.int8())), pl.List(pl.Int8), [[1], None]),
    "fixed_size_list": Case(pa.array([[1, 2], None], pa.list_(pa.int16(), 2)), pl.Array(pl.Int16, 2), [[1, 2], None]),
    "fixed_size_list(0)": Case(pa.array([[], None], pa.list_(pa.int16(), 0)), REFUSED, [[], None]),
    "struct": Case(
        pa.array([{"a": 1, "b": None}, None]),
        pl.Struct({"a": pl.Int64, "b": pl.Null}),
        [{"a": 1, "b": None}, None],
    ),
    "struct, one name twice": Case(
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), REFUSED, REFUSED
    ),
    "struct, a NUL in a name": Case(pa.array([{"a\0b": 1}]), REFUSED, [{"a\0b": 1}]),
    "list of decimal32": Case(
        pa.array([[D("1.25")], None], pa.list_(pa.decimal32(5, 2))),
        pl.List(pl.Decimal(5, 2)),
        [[D("1.25")], None],
        pa.large_list(pa.decimal128(5, 2)),
    ),
    "map": Case(
        pa.array([[("k", 1), ("k", 2), ("j", None)], None, []], MAP),
        pl.Map(pl.String, pl.Int64),
        [[("k", 1), ("k", 2), ("j", None)], None, []],
        MAP,
    ),
    "list of structs of maps": Case(
        pa.array([[{"m": [("k", 1)]}, None], None], pa.list_(pa.struct([("m", MAP)]))),
        pl.List(pl.Struct({"m": pl.Map(pl.String, pl.Int64)})),
        [[{"m": [("k", 1)]}, None], None],
        pa.large_list(pa.struct([("m", MAP)])),
    ),
    "list of timestamp[ns]": Case(
        pa.ListArray.from_arrays([0, 1], stored([7000], pa.timestamp("ns"))),
        pl.List(pl.Datetime("ns")),
        [[dt.datetime(1970, 1, 1, 0, 0, 0, 7)]],
        pa.large_list(pa.timestamp("ns")),
    ),
    "list of time64, 25:00": Case(
        pa.ListArray.from_arrays([0, 1], stored([25 * 3600 * 10**6], pa.time64("us"))),
        UnsupportedValueError,
        UnsupportedValueError,
    ),
    "map of timestamp[ns], below a microsecond": Case(
        pa.MapArray.from_arrays([0, 1], pa.array(["k"]), stored([7], pa.timestamp("ns"))),
        pl.Map(pl.String, pl.Datetime("ns")),
        UnsupportedValueError,
        pa.map_(pa.string(), pa.timestamp("ns")),
    ),
    "struct of decimal256": Case(
        pa.array([{"a": D("1")}], pa.struct([("a", pa.decimal256(39, 0))])), REFUSED, [{"a": D("1")}]
    ),
    "struct of view and date64": Case(
        pa.array([{"a": "x", "b": dt.date(2013, 1, 1)}], pa.struct([("a", pa.string_view()), ("b", pa.date64())])),
        pl.Struct({"a": pl.String, "b": pl.Date}),
        [{"a": "x", "b": dt.date(2013, 1, 1)}],
        pa.struct([("a", pa.large_string()), ("b", pa.date32())]),
    ),
}
DICTIONARIES = {
    "dictionary of text": Case(coded(pa.array(["x", "y"])), pl.Categorical, ["x", "y", "x"], pa.large_string()),
    "dictionary of text, null codes": Case(
        coded(pa.array(["x", "y"]), [0, None, 1], pa.int8()), pl.Categorical, ["x", None, "y"], pa.large_string()
    ),
    "dictionary with a null": Case(coded(pa.array(["x", None])), pl.Categorical, ["x", None, "x"], pa.large_string()),
    "dictionary of integers": Case(coded(pa.array([7, 9])), pl.Int64, [7, 9, 7], pa.int64()),
    "dictionary of date64": Case(
        coded(pa.array([dt.date(2013, 1, 1), None], pa.date64())),
        pl.Date,
        [dt.date(2013, 1, 1), None, dt.date(2013, 1, 1)],
        pa.date32(),
    ),
    "dictionary of timestamp[ns]": Case(
        coded(stored([1, 2], pa.timestamp("ns"))), pl.Datetime("ns"), UnsupportedValueError, pa.timestamp("ns")
    ),
    "dictionary of timestamp[s], beyond ms": Case(
        coded(stored([1, 2**62], pa.timestamp("s"))), UnsupportedValueError, UnsupportedValueError
    ),
    "list of dictionaries": Case(
        pa.ListArray.from_arrays([0, 2], coded(pa.array(["x", "y"]), [0, 1])),
        pl.List(pl.Categorical),
        [["x", "y"]],
        pa.large_list(pa.large_string()),
    ),
    "dictionary of dictionaries": Case(coded(coded(pa.array(["x"]), [0, 0])), REFUSED, REFUSED),
    "extension": Case(pa.array([b"1" * 16, None], pa.uuid()), pl.Binary, [b"1" * 16, None], pa.large_binary()),
}
NOT_ON_THE_WIRE = {
    "list_view": Case(pa.array([[1]], pa.list_view(pa.int64())), REFUSED, REFUSED),
    "run ends": Case(pa.array([7], pa.run_end_encoded(pa.int32(), pa.int64())), REFUSED, REFUSED),
    "interval": Case(pa.array([(1, 2, 3)], pa.month_day_nano_interval()), REFUSED, REFUSED),
    "union": Case(pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), REFUSED, REFUSED),
}
CASES = {**INTEGERS, **PLAIN, **DECIMALS, **TIMES, **NESTED, **DICTIONARIES, **NOT_ON_THE_WIRE}


def table_of(array: Any) -> pa.Table:
    """Three chunks, the last with an offset, as a fetched body may have."""
    part = pa.concat_arrays([array, array]).slice(len(array)) if not pa.types.is_nested(array.type) else array
    column = pa.chunked_array([array, part, array], array.type)
    return pa.table({"_row_id": pa.array(range(len(column)), pa.int64()), "c": column})


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def expect_refusal(case: Case, form: Form, expected: Any) -> bool:
    if expected is REFUSED:
        with pytest.raises(UnsupportedTypeError, match=r"Column 'c' has the type"):
            to_form(table_of(case.array), form)
    elif expected is UnsupportedValueError:
        with pytest.raises(UnsupportedValueError, match=r"Row \d+ of column 'c' holds a"):
            to_form(table_of(case.array), form)
    else:
        return False
    return True


@pytest.mark.parametrize("form", [Form.POLARS_FRAME, Form.POLARS_LAZY])
def test_polars(case: Case, form: Form) -> None:
    if expect_refusal(case, form, case.polars):
        return
    table = table_of(case.array)
    made = to_form(table, form)
    frame = made.collect() if isinstance(made, pl.LazyFrame) else made
    assert isinstance(frame, pl.DataFrame)
    assert frame.schema["c"] == case.polars
    assert frame.columns == ["_row_id", "c"]
    back = frame.to_arrow()["c"]
    wanted = table["c"]
    if isinstance(case.array.type, pa.BaseExtensionType):
        wanted = pa.chunked_array([chunk.storage for chunk in wanted.chunks])
    if pa.types.is_dictionary(wanted.type):
        wanted = pa.chunked_array([chunk.dictionary_decode() for chunk in wanted.chunks])
    if case.polars_as is not None:
        back, wanted = decoded(back).cast(case.polars_as), decoded(wanted).cast(case.polars_as)
    assert back.combine_chunks().equals(wanted.combine_chunks().cast(back.type))


def decoded(column: Any) -> Any:
    """Without the dictionary inside a list, for which pyarrow has no cast."""
    if pa.types.is_nested(column.type) and pa.types.is_dictionary(column.type.field(0).type):
        return pa.chunked_array([pa.array(column.to_pylist(), pa.large_list(pa.large_string()))])
    return column


def test_rows(case: Case) -> None:
    if expect_refusal(case, Form.ROWS, case.python):
        return
    rows = to_form(table_of(case.array), Form.ROWS)
    assert isinstance(rows, list)
    values = [row["c"] for row in rows]
    assert repr(values) == repr(case.python * 3)  # repr: 1 is not 1.0, -0.0 is not 0.0, a fold is seen
    assert [row["_row_id"] for row in rows] == list(range(len(values)))


def test_arrow_forms_take_everything_but_views_as_it_is(case: Case) -> None:
    table = table_of(case.array)
    expected = _without_views(table)
    given: Any = to_form(table, Form.ARROW_TABLE)
    assert given is table if expected is table else given.equals(expected)
    reader = to_form(table, Form.ARROW_READER)
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().equals(expected)


def _without_views(table: pa.Table) -> pa.Table:
    """The same values from Python's own, for the types that hold views."""
    dtype = table.schema.field("c").type
    if "view" not in str(dtype):
        return table
    plain = plain_type(dtype)
    column = pa.array(table["c"].to_pylist(), plain)
    return table.set_column(1, table.schema.field("c").with_type(plain), column)


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_ON_THE_WIRE])
def test_pandas_alters_nothing(name: str) -> None:
    case = CASES[name]
    table = table_of(case.array)
    frame: Any = to_form(table, Form.PANDAS_FRAME)
    assert list(frame.columns) == ["_row_id", "c"]
    expected = _without_views(table)["c"]
    assert frame["c"].dtype == pd.ArrowDtype(expected.type)
    assert frame["c"].array.__arrow_array__().equals(expected)


# --- exactness beyond the type ----------------------------------------------------------------------------------------


def test_nan_null_and_signed_zero_stay_apart() -> None:
    table = pa.table({"_row_id": [0, 1, 2], "x": [float("nan"), None, -0.0]})
    for form in FORMS:
        made: Any = to_form(table, form)
        if form is Form.POLARS_LAZY:
            made = made.collect()
        if form is Form.ROWS:
            values = [row["x"] for row in made]
        elif form is Form.PANDAS_FRAME:
            values = made["x"].array.__arrow_array__().to_pylist()
        else:
            values = made["x"].to_list() if isinstance(made, pl.DataFrame) else to_list(made)
        assert repr(values) == "[nan, None, -0.0]"


def to_list(made: Any) -> list[Any]:
    values: list[Any] = (made.read_all() if isinstance(made, pa.RecordBatchReader) else made)["x"].to_pylist()
    return values


def test_numbers_become_polars_without_a_copy() -> None:
    table = pa.table({"_row_id": pa.array(np.arange(1000)), "x": pa.array(np.arange(1000) * 0.5)})
    frame = to_form(table, Form.POLARS_FRAME)
    assert isinstance(frame, pl.DataFrame)
    assert frame["x"].to_numpy(allow_copy=False).ctypes.data == table["x"].chunk(0).buffers()[1].address


def test_the_first_bad_row_is_named() -> None:
    good, bad = [0] * 100, [86_400]
    column = pa.chunked_array([stored(good, pa.time32("s")), stored(good + bad + good, pa.time32("s"))])
    for form in (Form.POLARS_FRAME, Form.ROWS):
        with pytest.raises(UnsupportedValueError) as caught:
            to_form(pa.table({"_row_id": range(301), "c": column}), form)
        assert caught.value.details == {"column": "c", "row": 200}
        assert "86400" not in str(caught.value)
        assert "pa.Table" in caught.value.hint


def test_what_lies_under_a_null_is_not_looked_at() -> None:
    late = stored([5, 1000], pa.timestamp("ns"))
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2]), late, mask=pa.array([True, False]))
    rows: Any = to_form(pa.table({"_row_id": [0, 1], "c": hidden}), Form.ROWS)
    assert [row["c"] for row in rows] == [None, [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]]
    hours = stored([86_400, 1], pa.time32("s"))
    hidden = pa.StructArray.from_arrays([hours], names=["t"], mask=pa.array([True, False]))
    frame: Any = to_form(pa.table({"_row_id": [0, 1], "c": hidden}), Form.POLARS_FRAME)
    assert frame["c"].to_list() == [None, {"t": dt.time(0, 0, 1)}]


def test_both_sides_of_a_clock_change_stay_apart() -> None:
    instants = [dt.datetime(2013, 11, 3, 5, 30), dt.datetime(2013, 11, 3, 6, 30)]
    column = pa.array(instants, pa.timestamp("us", "America/New_York"))
    rows: Any = to_form(pa.table({"_row_id": [0, 1], "c": column}), Form.ROWS)
    assert [row["c"].astimezone(dt.UTC).replace(tzinfo=None) for row in rows] == instants
    assert [row["c"].fold for row in rows] == [0, 1]


def test_rows_do_not_depend_on_pandas() -> None:
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pandas': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import pyarrow as pa\n"
        "from framewire.frame import Form, to_form\n"
        "t = pa.table({'_row_id': [0], 'c': pa.array([5000], pa.int64()).view(pa.timestamp('ns'))})\n"
        "print(to_form(t, Form.ROWS))\n"
        "try: to_form(t, Form.PANDAS_FRAME)\n"
        "except Exception as e: print(type(e).__name__, e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "datetime.datetime(1970, 1, 1, 0, 0, 0, 5)" in done.stdout
    assert "S2SPError" in done.stdout
    assert "pip install 'framewire[pandas]'" in done.stdout


# --- dictionaries that Polars knows -----------------------------------------------------------------------------------


def enum_table(values: list[str | None]) -> pa.Table:
    """What a Polars Enum of a, b, c exports, with `values` for its dictionary."""
    field = pl.DataFrame({"e": pl.Series(["a"], dtype=pl.Enum(["a", "b", "c"]))}).to_arrow().schema.field("e")
    codes = pa.array(range(len(values)), pa.uint8())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.large_string()), ordered=True)
    ids = pa.field("_row_id", pa.int64(), nullable=False)
    return pa.table([pa.array(range(len(values)), pa.int64()), array], schema=pa.schema([ids, field]))


def test_an_enum_stays_an_enum() -> None:
    frame: Any = to_form(enum_table(["c", "a"]), Form.POLARS_FRAME)
    assert frame.schema["e"] == pl.Enum(["a", "b", "c"])
    assert frame["e"].to_list() == ["c", "a"]


def test_an_enum_value_outside_its_categories_is_no_null() -> None:
    with pytest.raises(BadBodyError, match="Column 'e'"):
        to_form(enum_table(["c", "other"]), Form.POLARS_FRAME)


def test_the_same_inside_a_list() -> None:
    table = enum_table(["c", "other"])
    field = table.schema.field("e")
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), table["e"].chunk(0), type=pa.list_(field))
    with pytest.raises(BadBodyError, match="Column 'l'"):
        to_form(pa.table({"_row_id": [0, 1], "l": lists}), Form.POLARS_FRAME)


@pytest.mark.parametrize("metadata", [b"99999999;a", b"\xff\xfe"])
def test_a_polars_panic_is_an_ordinary_error(metadata: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    field = pa.field("e", pa.dictionary(pa.uint8(), pa.string()), metadata={b"_PL_ENUM_VALUES2": metadata})
    array = pa.DictionaryArray.from_arrays(pa.array([0], pa.uint8()), pa.array(["b"]))
    table = pa.table([pa.array([0]), array], schema=pa.schema([pa.field("_row_id", pa.int64()), field]))
    with pytest.raises(BadBodyError, match="PanicException"):
        to_form(table, Form.POLARS_FRAME)


def test_schema_metadata_that_is_no_text_does_no_harm() -> None:
    table = pa.table({"_row_id": [0]}).replace_schema_metadata({b"\xff": b"\xff"})
    frame: Any = to_form(table, Form.POLARS_FRAME)
    assert frame["_row_id"].to_list() == [0]


def test_dictionaries_that_change_between_chunks() -> None:
    column = pa.chunked_array([coded(pa.array(["a", "b"]), [0, 1]), coded(pa.array(["c", "a"]), [0, 1])])
    table = pa.table({"_row_id": range(4), "c": column})
    frame: Any = to_form(table, Form.POLARS_FRAME)
    assert frame["c"].to_list() == ["a", "b", "c", "a"]
    rows: Any = to_form(table, Form.ROWS)
    assert [row["c"] for row in rows] == ["a", "b", "c", "a"]


# --- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunks", [[], [pa.array([], pa.int64())]])
def test_no_rows_keep_their_schema(form: Form, chunks: list[Any]) -> None:
    column = pa.chunked_array(chunks, pa.int64())
    table = pa.table({"_row_id": column, "d": column.cast(pa.timestamp("s"))})
    made: Any = to_form(table, form)
    if form is Form.ROWS:
        assert made == []
        return
    if form is Form.POLARS_LAZY:
        made = made.collect()
    if form is Form.ARROW_READER:
        assert made.schema == table.schema
        made = made.read_all()
    assert len(made) == 0
    assert list(made.columns if form not in (Form.ARROW_TABLE, Form.ARROW_READER) else made.column_names) == [
        "_row_id",
        "d",
    ]


def test_only_row_ids() -> None:
    for form in FORMS:
        made: Any = to_form(pa.table({"_row_id": [4, 2]}), form)
        if form is Form.ROWS:
            assert made == [{"_row_id": 4}, {"_row_id": 2}]
        elif form is Form.POLARS_FRAME:
            assert made["_row_id"].to_list() == [4, 2]


def test_no_columns_are_refused_by_polars_form() -> None:
    frame: Any = to_form(pa.table({}), Form.POLARS_FRAME)
    assert frame.shape == (0, 0)


# --- annotations ------------------------------------------------------------------------------------------------------


class Departure(TypedDict):
    carrier: str


class MyFrame(pl.DataFrame):
    pass


@pytest.mark.parametrize(
    ("annotation", "form"),
    [
        (pl.DataFrame, Form.POLARS_FRAME),
        (pl.LazyFrame, Form.POLARS_LAZY),
        (pa.Table, Form.ARROW_TABLE),
        (pa.RecordBatchReader, Form.ARROW_READER),
        (pd.DataFrame, Form.PANDAS_FRAME),
        (list, Form.ROWS),
        (typing.List, Form.ROWS),  # noqa: UP006 - users still write these
        (list[dict], Form.ROWS),  # type: ignore[type-arg]
        (typing.List[dict[str, Any]], Form.ROWS),  # noqa: UP006
        (list[dict[str, object]], Form.ROWS),
        (list[Departure], Form.ROWS),
        (Sequence[Mapping[str, Any]], Form.ROWS),
        (Iterable[Mapping[str, Any]], Form.ROWS),
        (Annotated[pl.DataFrame, "departures"], Form.POLARS_FRAME),
        (typing.Optional[pa.Table], Form.ARROW_TABLE),  # noqa: UP045
        (pl.DataFrame | None, Form.POLARS_FRAME),
        (Annotated[pl.LazyFrame | None, "x"], Form.POLARS_LAZY),
        (typing.Union[pl.LazyFrame, pl.DataFrame], Form.POLARS_LAZY),  # noqa: UP007
        (str | pl.DataFrame, None),
        (MyFrame, None),
        (pl.Series, None),
        (list[int], None),
        (list[str], None),
        (Sequence[str], None),
        (Sequence, None),
        (dict, None),
        (dict[str, Any], None),
        (str, None),
        (int | None, None),
        (Any, None),
        (None, None),
        (type(None), None),
        ("pl.DataFrame", None),
    ],
)
def test_form_of(annotation: Any, form: Form | None) -> None:
    assert form_of(annotation) is form


def test_annotations_import_no_pandas() -> None:
    code = (
        "import sys\n"
        "from framewire.frame import form_of\n"
        "import polars as pl\n"
        "form_of(pl.DataFrame); form_of(int); form_of(list[dict])\n"
        "print('pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_missing_pandas_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(S2SPError, match=r"pip install 'framewire\[pandas\]'"):
        to_form(pa.table({"_row_id": [0]}), Form.PANDAS_FRAME)


# --- text cast to views -----------------------------------------------------------------------------------------------


def spread(values: list[str], dtype: pa.DataType, buffer_bytes: int) -> pa.Array:
    """``values`` in a data buffer of ``buffer_bytes`` bytes: one more, in the middle, is as long as that takes."""
    middle = len(values) // 2
    head, tail = (b"".join(text.encode() for text in part) for part in (values[:middle], values[middle:]))
    data = np.zeros(buffer_bytes, np.uint8)
    data[: len(head)] = np.frombuffer(head, np.uint8)
    data[buffer_bytes - len(tail) :] = np.frombuffer(tail, np.uint8)
    lengths = [len(text.encode()) for text in values]
    lengths.insert(middle, buffer_bytes - len(head) - len(tail))
    width = np.int32 if dtype in (pa.string(), pa.binary()) else np.int64
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(width)
    return pa.Array.from_buffers(dtype, len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


@pytest.mark.parametrize(
    ("dtype", "buffer_bytes"),
    [
        *((dtype, size) for dtype in (pa.string(), pa.binary()) for size in (2**31 - 2, 2**31 - 1)),
        *((dtype, 2**31 + extra) for dtype in (pa.large_string(), pa.large_binary()) for extra in (-1, 0, 1, 100)),
    ],
    ids=str,
)
def test_text_at_the_reach_of_a_view(dtype: pa.DataType, buffer_bytes: int) -> None:
    values = ["first", "a text longer than twelve bytes", "é" * 20, "the last, longer than twelve bytes"]
    array = spread(values, dtype, buffer_bytes)
    frame: Any = to_form(pa.table({"c": array}), Form.POLARS_FRAME)
    lengths = frame["c"].bin.size() if "binary" in str(dtype) else frame["c"].str.len_bytes()
    assert lengths.to_list()[2] == buffer_bytes - sum(len(text.encode()) for text in values)
    shown = [frame["c"][at] for at in (0, 1, 3, 4)]
    assert [text if isinstance(text, str) else text.decode() for text in shown] == values


@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_large_text_columns_keep_values_nulls_and_chunks(dtype: pa.DataType) -> None:
    values = [None if at % 7 == 0 else f"{at} é"[: at % 5 * 9] + "and more text" * (at % 3) for at in range(30_000)]
    array = pa.array([text if text is None else text.encode() for text in values], pa.large_binary()).cast(dtype)
    chunks = [array.slice(3, 20_000), array.slice(0, 0), array.slice(11, 13), array, pa.nulls(5, dtype)]
    table = pa.table({"a": pa.chunked_array(chunks), "b": pa.chunked_array(chunks), "n": range(50_018)})
    for part in (table, table.slice(7), table.slice(19_990, 30_000)):
        frame: Any = to_form(part, Form.POLARS_FRAME)
        expected = part["a"].to_pylist()
        assert part.nbytes > 1 << 20
        assert frame["a"].to_list() == frame["b"].to_list() == expected
        assert frame["n"].to_list() == part["n"].to_pylist()
        assert frame["a"].null_count() == part["a"].null_count
