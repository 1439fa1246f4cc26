"""pandas frames through ``to_table``."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from framewire import to_table
from framewire.errors import ColumnNameError, UnsupportedTypeError, UnsupportedValueError

Make = Callable[[], Any]


def _columns(frame: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = to_table(frame).to_pydict()
    return columns


INDEXES: list[tuple[str, Make, dict[str, list[Any]]]] = [
    ("default", lambda: pd.DataFrame({"a": [1, 2]}), {"a": [1, 2]}),
    ("named", lambda: pd.DataFrame({"px": [1]}, index=pd.Index(["A"], name="sym")), {"sym": ["A"], "px": [1]}),
    ("named range", lambda: pd.DataFrame({"px": [1]}, index=pd.RangeIndex(1, name="i")), {"i": [0], "px": [1]}),
    ("tail", lambda: pd.DataFrame({"a": [1, 2, 3]})[1:], {"index": [1, 2], "a": [2, 3]}),
    ("filtered", lambda: pd.DataFrame({"a": [1, 2]}).query("a > 1"), {"index": [1], "a": [2]}),
    ("several levels",
     lambda: pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("x", 5)], names=["k", None])),
     {"k": ["x"], "level_1": [5], "a": [1]}),
    ("times", lambda: pd.DataFrame({"a": [1]}, index=pd.DatetimeIndex(["2020-01-01"], name="t")),
     {"t": [dt.datetime(2020, 1, 1)], "a": [1]}),
    ("categories", lambda: pd.DataFrame({"a": [1]}, index=pd.CategoricalIndex(["k"], name="c")),
     {"c": ["k"], "a": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), [c[1:] for c in INDEXES], ids=[c[0] for c in INDEXES])
def test_indexes_become_columns(make: Make, expected: dict[str, list[Any]]) -> None:
    assert _columns(make()) == expected
    assert list(_columns(make())) == list(expected)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"px": [1]}, index=pd.Index(["A"], name="px")),
        pd.DataFrame({"index": [1, 2]})[1:],
        pd.DataFrame({"a": [1]}, index=pd.Index([5], name="_row_id")),
        pd.DataFrame({"a": [1]}, index=pd.Index([5], name=7)),
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
        pd.DataFrame([[1]], columns=[None]),
    ],
)
def test_names_that_cannot_be_columns(frame: Any) -> None:
    with pytest.raises(ColumnNameError) as caught:
        to_table(frame)
    assert caught.value.hint


def test_an_index_that_clashes_is_told_how_to_go() -> None:
    with pytest.raises(ColumnNameError, match="The index would become column 'px'") as caught:
        to_table(pd.DataFrame({"px": [1]}, index=pd.Index(["A"], name="px")))
    assert "reset_index" in caught.value.hint


TYPES: list[tuple[str, Any, pa.DataType, list[Any]]] = [
    ("int8", np.array([1, -1], "i1"), pa.int8(), [1, -1]),
    ("big endian", np.array([1, 258], ">i4"), pa.int32(), [1, 258]),
    ("float16", np.array([1.5], "f2"), pa.float16(), [1.5]),
    ("bool", np.array([True]), pa.bool_(), [True]),
    ("nullable int", pd.array([2**53 + 1, None], dtype="Int64"), pa.int64(), [2**53 + 1, None]),
    ("nullable uint", pd.array([2**64 - 1, None], dtype="UInt64"), pa.uint64(), [2**64 - 1, None]),
    ("nullable bool", pd.array([True, None], dtype="boolean"), pa.bool_(), [True, None]),
    ("nullable float", pd.array([1.5, None], dtype="Float32"), pa.float32(), [1.5, None]),
    ("str", pd.array(["a", None], dtype="str"), pa.large_string(), ["a", None]),
    ("string[python]", pd.array(["a", None], dtype="string[python]"), pa.large_string(), ["a", None]),
    ("string[pyarrow]", pd.array(["a", None], dtype="string[pyarrow]"), pa.large_string(), ["a", None]),
    ("arrow", pd.array([Decimal("1.50"), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))), pa.decimal128(5, 2),
     [Decimal("1.50"), None]),
    ("arrow list", pd.array([[1], None], dtype=pd.ArrowDtype(pa.list_(pa.int8()))), pa.list_(pa.int8()), [[1], None]),
    ("categories", pd.Categorical(["a", None, "b"], ["z", "a", "b"], ordered=True),
     pa.dictionary(pa.int8(), pa.large_string(), ordered=True), ["a", None, "b"]),
    ("int categories", pd.Categorical([1, 2, None]), pa.dictionary(pa.int8(), pa.int64()), [1, 2, None]),
    ("sparse", pd.arrays.SparseArray([0, 0, 1]), pa.int64(), [0, 0, 1]),
    ("seconds", np.array(["0001-01-01", "NaT"], "M8[s]"), pa.timestamp("s"), [dt.datetime(1, 1, 1), None]),
    ("durations", np.array([1, "NaT"], "m8[us]"), pa.duration("us"), [dt.timedelta(microseconds=1), None]),
    ("zoned", pd.to_datetime(["2020-07-01", None]).tz_localize("Europe/Berlin").as_unit("us"),
     pa.timestamp("us", "Europe/Berlin"), [pd.Timestamp("2020-07-01", tz="Europe/Berlin").to_pydatetime(), None]),
    ("offset", pd.to_datetime(["2020-07-01T00:00+05:30", None]).as_unit("us"), pa.timestamp("us", "UTC"),
     [dt.datetime(2020, 6, 30, 18, 30, tzinfo=dt.UTC), None]),
    ("objects: missing text", pd.Series(["a", np.nan, None, pd.NA, pd.NaT], dtype=object), pa.large_string(),
     ["a", None, None, None, None]),
    ("objects: missing decimals", pd.Series([Decimal("1.5"), np.nan], dtype=object), pa.decimal128(2, 1),
     [Decimal("1.5"), None]),
    ("objects: missing bools", pd.Series([True, np.nan], dtype=object), pa.bool_(), [True, None]),
    ("objects: lists", pd.Series([[1], [2, 3]]), pa.large_list(pa.int64()), [[1], [2, 3]]),
    ("no objects", pd.Series([], dtype=object), pa.null(), []),
]  # fmt: skip


@pytest.mark.parametrize(("values", "kind", "expected"), [case[1:] for case in TYPES], ids=[case[0] for case in TYPES])
def test_types_and_values(values: Any, kind: pa.DataType, expected: list[Any]) -> None:
    table = to_table(pd.DataFrame({"x": values}))
    assert table.schema.field("x").type == kind
    assert table["x"].to_pylist() == expected


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", object, "Sparse[float]"])
def test_nan_is_pandas_missing_value(dtype: Any) -> None:
    """In numpy's columns, where pandas has no other; -0.0 and infinity are numbers."""
    values = pd.Series([np.nan, 1.5, -0.0, np.inf]).astype(dtype)
    column = to_table(pd.DataFrame({"x": values}))["x"]
    assert column.to_pylist() == [None, 1.5, 0.0, math.inf]
    assert math.copysign(1, column[2].as_py()) == -1
    kept = to_table(pd.DataFrame({"x": values}), nan_is_null=False)["x"]
    assert kept.null_count == 0
    assert math.isnan(kept[0].as_py())


def test_nan_stays_nan_where_pandas_has_a_missing_value_beside_it() -> None:
    nullable = pd.array([0.0, None], dtype="Float64")
    nullable._data[0] = np.nan  # what 0/0 leaves there in older frames
    arrow = pd.arrays.ArrowExtensionArray(pa.array([math.nan, None]))
    for values in (nullable, arrow):
        column = to_table(pd.DataFrame({"x": values}))["x"]
        assert math.isnan(column[0].as_py())
        assert column[1].as_py() is None


def test_nan_in_index_levels_is_missing_too() -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index([np.nan, 2.5], name="key"))
    assert to_table(frame)["key"].to_pylist() == [None, 2.5]
    assert to_table(frame, nan_is_null=False)["key"].null_count == 0


@pytest.mark.parametrize("data", [[{"x": math.nan}], pl.DataFrame({"x": [math.nan]}), pa.table({"x": [math.nan]})])
def test_nan_stays_nan_outside_of_pandas(data: Any) -> None:
    assert math.isnan(to_table(data)["x"][0].as_py())


def test_nanoseconds_and_far_years_survive() -> None:
    frame = pd.DataFrame({"ns": np.array([1, 2], "M8[ns]"), "far": np.array(["-5000", "9999"], "M8[s]")})
    table = to_table(frame)
    assert table.schema.types == [pa.timestamp("ns"), pa.timestamp("s")]
    assert table["ns"].cast(pa.int64()).to_pylist() == [1, 2]
    assert table["far"].cast(pa.int64()).to_pylist() == frame["far"].to_numpy().astype("i8").tolist()


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (pd.period_range("2020", periods=1, freq="M"), "to_timestamp"),
        (pd.interval_range(0, 1), "left"),
        (pd.cut([1, 2], 2), "left"),
        (np.array([1j]), "astype"),
        (np.array([1], np.longdouble), "astype"),
    ],
    ids=["period", "interval", "interval categories", "complex", "long double"],
)
def test_types_without_a_form_are_refused(values: Any, hint: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="Column 'x") as caught:
        to_table(pd.DataFrame({"x": values}))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("values", "row", "words"),
    [
        (["idle", "run", 7], 2, "int in a column of str"),
        ([pd.Timestamp("2021-06-01 09:00"), pd.Timestamp("2021-06-01 09:00", tz="Asia/Tokyo")], 1, "time zone"),
        ([{1}], 0, "set has no form"),
        (["ok", "a\ud800"], 1, "lone surrogate"),
    ],
)
def test_objects_follow_the_rule_of_python_values(values: list[Any], row: int, words: str) -> None:
    with pytest.raises(UnsupportedValueError, match=f"Column 'x', row {row}: .*{words}"):
        to_table(pd.DataFrame({"x": pd.Series(values, dtype=object)}))


def test_frames_without_columns_or_rows() -> None:
    assert to_table(pd.DataFrame()).shape == (0, 0)
    assert to_table(pd.DataFrame(index=range(3))).shape == (3, 0)
    assert to_table(pd.DataFrame({"a": pd.Series([], dtype="int8")})).schema.field("a").type == pa.int8()


def test_the_frame_is_not_changed() -> None:
    frame = pd.DataFrame({"a": [1, None], "b": pd.Series(["x", np.nan], dtype=object)}, index=["r", "s"])
    before = frame.copy(deep=True)
    to_table(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_only_the_categories_that_are_left_are_shipped() -> None:
    frame = pd.DataFrame({"c": pd.Series([f"private-{n}" for n in range(1000)]).astype("category")})[7:8]
    sink = pa.BufferOutputStream()
    table = to_table(frame)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert bytes(sink.getvalue()).count(b"private-") == 1
