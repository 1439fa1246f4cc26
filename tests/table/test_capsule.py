"""Arrow, Polars, duckdb and foreign streams through ``to_table``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from framewire import to_table
from framewire.errors import ColumnNameError, PublishError, S2SPError, UnsupportedTypeError, UnsupportedValueError


def stream_bytes(table: pa.Table) -> bytes:
    """What an IPC writer puts on the wire."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def through_ipc(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(pa.ipc.open_stream(stream_bytes(table)).read_all())
    assert isinstance(frame, pl.DataFrame)
    return frame


class Foreign:
    """A library that nobody listed."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.reads = 0

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self.reads += 1
        return self._source.__arrow_c_stream__(requested_schema)


TABLE = pa.table({"a": [1, 2], "s": ["x", None]})


def _reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TABLE, id="table"),
        pytest.param(TABLE.to_batches()[0], id="batch"),
        pytest.param(_reader(), id="reader"),
        pytest.param(Foreign(TABLE), id="stream"),
        pytest.param(pl.DataFrame(TABLE), id="polars"),
        pytest.param(pl.LazyFrame(TABLE), id="lazy"),
        pytest.param(TABLE.to_pandas(), id="pandas"),
        pytest.param(TABLE.to_pylist(), id="rows"),
    ],
)
def test_every_input_holds_the_same_values(data: Any) -> None:
    assert to_table(data).to_pylist() == TABLE.to_pylist()


def test_a_table_that_is_clean_is_not_copied() -> None:
    numbers = pa.table({"a": pa.array(range(1000))})
    assert to_table(numbers)["a"].chunk(0).buffers()[1].address == numbers["a"].chunk(0).buffers()[1].address


def test_only_the_rows_that_are_left_are_shipped() -> None:
    texts = [f"private-row-text-{n:05d}" for n in range(1000)]
    frame = pl.DataFrame({"id": range(1000), "s": texts}).filter(pl.col("id") == 7)
    for data in (frame, frame.lazy(), pa.table(frame), Foreign(frame), pa.table({"s": texts})[7:8]):
        assert stream_bytes(to_table(data)).count(b"private-row-text-") == 1
    dictionary = pa.table({"s": pa.array(texts).dictionary_encode()})
    assert stream_bytes(to_table(dictionary[7:8])).count(b"private-row-text-") == 1


def test_polars_types_come_back_as_they_were() -> None:
    kind = pl.Enum(["a", "b", "never used"])
    frame = pl.DataFrame(
        {
            "enum": pl.Series(["a", None, "b"], dtype=kind),
            "categorical": pl.Series(["a", None, "b"], dtype=pl.Categorical),
            "in a list": pl.Series([["a"], None, ["b", "a"]], dtype=pl.List(kind)),
            "in a struct": pl.Series([{"e": "a"}, None, {"e": "b"}], dtype=pl.Struct({"e": kind})),
            "view": ["a text that is longer than twelve bytes", None, "short"],
        }
    )
    table = to_table(frame)
    assert table.schema.field("view").type == pa.string_view()
    assert set(table.schema.field("enum").metadata) == {b"_PL_ENUM_VALUES2"}
    assert set(table.schema.field("categorical").metadata) == {b"_PL_CATEGORICAL2"}
    assert through_ipc(table).equals(frame)
    assert through_ipc(table).schema == frame.schema


@pytest.mark.parametrize("kind", [pl.Object(), pl.Int128(), pl.UInt128()], ids=str)
def test_polars_types_without_a_form_in_arrow(kind: pl.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=f"Column 'x' is polars {kind}") as caught:
        to_table(pl.DataFrame({"ok": [1], "x": pl.Series([1], dtype=kind)}))
    assert "cast" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        (pl.List(pl.Int128), [1], "x[]"),
        (pl.Array(pl.Int128, 1), [1], "x[]"),
        (pl.Struct({"a": pl.List(pl.Int128)}), {"a": [1]}, "x.a[]"),
    ],
)
def test_polars_types_without_a_form_deep_inside(kind: pl.DataType, value: Any, path: str) -> None:
    with pytest.raises(UnsupportedTypeError) as caught:
        to_table(pl.DataFrame({"x": pl.Series([value], dtype=kind)}))
    assert caught.value.details["column"] == path


def test_heights_without_columns() -> None:
    for data in (
        pl.DataFrame(height=3),
        TABLE.append_column("z", [[1, 2]]).select([]),
        Foreign(pl.DataFrame(height=3)),
    ):
        table = to_table(data)
        assert (table.num_rows, table.num_columns) == (2 if isinstance(data, pa.Table) else 3, 0)
    empty = to_table(pl.DataFrame(schema={"a": pl.Int32}))
    assert (empty.num_rows, empty.schema.field("a").type) == (0, pa.int32())


def test_lazy_errors_are_the_callers_own() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        to_table(pl.LazyFrame({"a": [1]}).select("b"))


def test_a_reader_is_read_once() -> None:
    reader = _reader()
    assert to_table(reader).num_rows == 2
    assert to_table(reader).num_rows == 0, "a reader that was read is an empty one: documented"
    foreign = Foreign(TABLE)
    to_table(foreign)
    assert foreign.reads == 1


def test_errors_in_a_generator_are_the_callers_own() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        to_table(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))


def test_streams_that_are_no_tables() -> None:
    nulls = pa.chunked_array([pa.array([{"a": 1}, None])])
    for source in (pa.chunked_array([[1]]), nulls):
        with pytest.raises(PublishError, match="cannot be read as a table"):
            to_table(Foreign(source))
    with pytest.raises(PublishError, match="broke off"):
        to_table(pa.ipc.open_stream(stream_bytes(TABLE)[:-200]))


def test_duckdb_relations() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("select range a, 'x' || range s, range::hugeint h from range(3)")
        assert to_table(relation)["s"].to_pylist() == ["x0", "x1", "x2"]
        assert to_table(relation).num_rows == 3, "a relation runs again, it is not spent"
        assert to_table(relation.to_arrow_table()).num_rows == 3
        with pytest.raises(duckdb.InvalidInputException):
            to_table(connection.sql("select error('mine') a from range(2)"))
        with pytest.raises(ColumnNameError, match="Two columns are called 'a'"):
            to_table(connection.sql("select 1 a, 2 a"))
    with pytest.raises(PublishError, match="connection is closed"):
        to_table(relation)


@pytest.mark.parametrize(
    ("expression", "path", "words"),
    [
        ("1::uhugeint", "x", "uhugeint"),
        ("'10:00+02'::timetz", "x", "time with time zone"),
        ("{'q': ['101'::bit]}", "x.q[]", "bit"),
        ("map {'a': 1::uhugeint}", "x[]", "uhugeint"),
        ("interval 1 month", "x", "month_day_nano_interval"),
        ("union_value(k := 1)", "x", "union"),
        ("1::bignum", "x", "arrow.opaque"),
    ],
)
def test_duckdb_types_that_its_export_alters(expression: str, path: str, words: str) -> None:
    with duckdb.connect() as connection, pytest.raises(UnsupportedTypeError, match=f"(?i){words}") as caught:
        to_table(connection.sql(f"select {expression} x"))
    assert caught.value.details["column"] == path


def test_names_are_not_types() -> None:
    with duckdb.connect() as connection:
        assert to_table(connection.sql("select {'bit': 1} uhugeint"))["uhugeint"].to_pylist() == [{"bit": 1}]


@pytest.mark.parametrize("value", ["'24:00:00'::time", "170141183460469231731687303715884105727::hugeint"])
def test_duckdb_values_that_its_export_alters(value: str) -> None:
    with duckdb.connect() as connection, pytest.raises(UnsupportedValueError, match="Column 'x', row 0") as caught:
        to_table(connection.sql(f"select {value} x"))
    assert "1701411" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [pl.DataFrame({"_row_id": [9, 9]}), pa.table([[1], [2]], names=["a", "a"]), pl.DataFrame({"a\0b": [1]})],
    ids=["row id", "twice", "NUL"],
)
def test_names_that_cannot_cross(data: Any) -> None:
    with pytest.raises(ColumnNameError):
        to_table(data)


def test_narwhals_frames_are_unwrapped() -> None:
    # Its stream of an Object column would be the bytes of addresses.
    wrapper = type(
        "DataFrame", (Foreign,), {"__module__": "narwhals.dataframe", "to_native": lambda self: self._source}
    )
    with pytest.raises(S2SPError, match="polars Object"):
        to_table(wrapper(pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)})))
