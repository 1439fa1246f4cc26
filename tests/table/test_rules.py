"""Rules of the types page that no other test stands for."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pandas.tests.extension.decimal import DecimalArray

from framewire import to_table
from framewire.errors import UnsupportedValueError
from framewire.table._sliced_empties import rebuild_sliced_empties

NOON = dt.datetime(2020, 7, 1, 12)
FAR = 86_400_000 * 2**31
"""The first date64 that date32 has no room for."""


class Foreign:
    """Over the C interface, where buffers have no sizes."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_zones_of_other_libraries_keep_their_key() -> None:
    dateutil: Any = pytest.importorskip("dateutil.tz")  # pandas brings it
    stamp = NOON.replace(tzinfo=dateutil.gettz("Europe/Berlin"))
    column = to_table([{"x": stamp}])["x"]
    assert column.type == pa.timestamp("us", "Europe/Berlin")
    assert column[0].as_py() == stamp


def test_zones_with_a_key_in_another_attribute_keep_it() -> None:
    """As pytz's, which need not be installed here."""

    class Zone(dt.tzinfo):
        zone = "Europe/Berlin"

        def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
            return dt.timedelta(hours=2)

        def dst(self, when: dt.datetime | None) -> dt.timedelta:
            return dt.timedelta(hours=1)

        def tzname(self, when: dt.datetime | None) -> str:
            return "CEST"

    Zone.__module__ = "pytz.tzinfo"
    column = to_table([{"x": NOON.replace(tzinfo=Zone())}])["x"]
    assert column.type == pa.timestamp("us", "Europe/Berlin")
    assert column.cast(pa.int64())[0].as_py() == int((NOON - dt.datetime(1970, 1, 1)).total_seconds() - 7200) * 10**6


def test_dates_in_weeks_are_refused() -> None:
    with pytest.raises(UnsupportedValueError, match="Column 'x', row 0: .*unit without a form"):
        to_table([{"x": np.datetime64("2020-01-02", "W")}])


def test_dtypes_of_other_libraries_cross_by_their_values() -> None:
    frame = pd.DataFrame({"x": DecimalArray([Decimal("1.5"), Decimal("2.25")])})
    assert to_table(frame)["x"].to_pylist() == [Decimal("1.5"), Decimal("2.25")]


def test_a_null_map_key_is_refused() -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    array = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, pa.array([1, 2]))
    with pytest.raises(UnsupportedValueError, match="Column 'x' has a map with a null key"):
        to_table(pa.table({"x": array}))


def _dates(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64()).view(pa.date64())


@pytest.mark.parametrize(
    ("array", "path", "row"),
    [
        (_dates(0, FAR), "x", 1),
        (_dates(0, -FAR - 86_400_000), "x", 1),
        (pa.ListArray.from_arrays([0, 1, 2], _dates(0, FAR)), "x[]", 1),
        (pa.ListViewArray.from_arrays([1, 0], [1, 1], _dates(FAR, 0)), "x[]", 1),
        (pa.StructArray.from_arrays([_dates(0, FAR)], ["a"]), "x.a", 1),
        (pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), _dates(FAR, 0)), "x", 1),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), _dates(0, FAR)), "x", 1),
    ],
    ids=["after", "before", "list", "list view", "struct", "dictionary", "run ends"],
)
def test_dates_that_are_too_far_are_refused_by_row(array: pa.Array, path: str, row: int) -> None:
    with pytest.raises(UnsupportedValueError, match="too far for date32") as caught:
        to_table(pa.table({"x": array}))
    assert (caught.value.details["column"], caught.value.details["row"]) == (path, row)
    assert "185542587" not in str(caught.value)


def test_the_last_dates_cross() -> None:
    column = to_table(pa.table({"x": _dates(FAR - 86_400_000, None, -FAR)}))["x"]
    assert column.cast(pa.int32()).to_pylist() == [2**31 - 1, None, -(2**31)]


def test_far_dates_that_are_not_shown_do_no_harm() -> None:
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], _dates(FAR, 0, FAR))
    assert to_table(pa.table({"x": lists[1:2]}))["x"].to_pylist() == [[dt.date(1970, 1, 1)]]
    hidden = pa.StructArray.from_arrays([_dates(FAR, 0)], ["a"], mask=pa.array([True, False]))
    assert to_table(pa.table({"x": hidden}))["x"].to_pylist() == [None, {"a": dt.date(1970, 1, 1)}]


VIEWS = pa.array(["a text that is longer than a view"], pa.string_view())[1:]
EMPTY: dict[str, pa.Array] = {
    "list": pa.ListArray.from_arrays([0, 0], VIEWS),
    "large list": pa.LargeListArray.from_arrays([0, 0, 0], VIEWS)[1:],
    "list view": pa.ListViewArray.from_arrays([0], [0], VIEWS),
    "map": pa.MapArray.from_arrays([0, 0], pa.array([1])[1:], VIEWS),
    "struct": pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays([0, 0, 0], VIEWS)], ["a"], mask=pa.array([True, False])
    ),
    "fixed size list": pa.FixedSizeListArray.from_arrays(pa.ListArray.from_arrays([0, 0, 0], VIEWS), 2),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), VIEWS),
    "list of text": pa.ListArray.from_arrays([0, 0], pa.array(["x"])[1:]),
    "list of lists of text": pa.ListArray.from_arrays([0, 0], pa.array([["x"]])[1:]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_slices_of_nothing_come_over_the_c_interface(name: str) -> None:
    table = pa.table({"x": EMPTY[name]})
    assert to_table(Foreign(table))["x"].to_pylist() == EMPTY[name].to_pylist()
    assert to_table(Foreign(pa.concat_tables([table, table])))["x"].to_pylist() == EMPTY[name].to_pylist() * 2
    rebuilt = rebuild_sliced_empties(table)
    rebuilt.validate(full=True)
    assert rebuilt.schema == table.schema
    assert rebuilt.to_pylist() == table.to_pylist()


def test_pyarrow_still_refuses_its_own_slices_of_nothing() -> None:
    """Once it does not, ``_sliced_empties`` can go."""
    column = pa.RecordBatchReader.from_stream(Foreign(pa.table({"x": EMPTY["list"]}))).read_all()["x"]
    with pytest.raises(pa.ArrowInvalid, match="length: 0 and offset: 1"):
        column.validate(full=True)


def test_extension_types_and_run_ends_survive_the_rebuilding() -> None:
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16)))
    runs = pc.run_end_encode(pa.array([7, 7]))
    lists = pa.ListArray.from_arrays([0, 0], pa.nulls(1, pa.string())[1:])
    for array in (uuids, runs):
        both = pa.StructArray.from_arrays([lists, array[:1]], ["empty", "x"])
        assert rebuild_sliced_empties(pa.table({"x": both}))["x"].to_pylist() == both.to_pylist()


def test_an_enum_without_rows_keeps_its_categories() -> None:
    frame = pl.DataFrame({"e": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b", "c"]))})
    for part in (frame[1:1], frame[2:], pl.DataFrame(schema=frame.schema)):
        back = pl.from_arrow(to_table(part))
        assert isinstance(back, pl.DataFrame)
        assert back.schema == frame.schema
