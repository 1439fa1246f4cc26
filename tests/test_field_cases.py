"""Cases that people reported of other libraries, each with its right value, from the tool to the consumer's frame."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import json
import random
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import duckdb
import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pytest

from framewire import wire
from framewire.arrow import write
from framewire.arrow.read import END_OF_STREAM
from framewire.client import Options, PeerPolicy
from framewire.consume import Sources, resolve, resolve_form
from framewire.errors import (
    BadBodyError,
    ColumnNameError,
    PublishError,
    RowOutOfRangeError,
    S2SPError,
    SelectionError,
    TooLargeError,
    TransferFailedError,
    UnsupportedTypeError,
    UnsupportedValueError,
)
from framewire.frame import Form
from framewire.plane import DataPlane
from framewire.settings import Settings


@pytest.fixture(scope="module")
def plane() -> Iterator[DataPlane]:
    with DataPlane() as plane:
        yield plane


@pytest.fixture
def send(plane: DataPlane) -> Callable[..., pl.DataFrame]:
    """Publish, and resolve as a consumer."""

    def through(data: Any, row_ids: Any = None) -> pl.DataFrame:
        handle = plane.publish(data)
        try:
            return resolve(resource_url=handle.resource_url, row_ids=row_ids).drop("_row_id")
        finally:
            plane.revoke(handle)

    return through


Send = Callable[..., pl.DataFrame]


def _payload(plane: DataPlane, data: Any) -> bytes:
    """The stored bytes, as they are served."""
    url = plane.publish(data).resource_url
    headers = {"Accept": wire.ARROW_STREAM, wire.H_TYPES: wire.TYPES_VIEWS}
    return httpx.get(url, headers=headers, trust_env=False).content


# --- a) into and out of Arrow -----------------------------------------------------------------------------------------


TEXTS = [f"private-row-text-{i:05d}" for i in range(1000)]
FRAME = pl.DataFrame({"id": range(1000), "s": TEXTS})


@pytest.mark.parametrize(
    "data",
    [
        FRAME.filter(pl.col("id") == 7),
        FRAME.lazy().filter(pl.col("id") == 7),
        FRAME[7:8],
        pa.table(FRAME.filter(pl.col("id") == 7)),
        pa.table({"s": pa.array(TEXTS, pa.string_view())}).slice(7, 1),
        pa.table({"s": pa.array(TEXTS).dictionary_encode()}).filter(pa.array([i == 7 for i in range(1000)])),
        pd.DataFrame({"s": pd.Categorical(TEXTS)})[7:8],
        pd.DataFrame({"s": TEXTS})[7:8],
        FRAME.cast({"s": pl.Categorical})[7:8],
    ],
    ids=["filter", "lazy", "slice", "as Arrow", "view", "dictionary", "pandas category", "pandas", "categorical"],
)
def test_case_1_only_published_rows_leave(plane: DataPlane, data: Any) -> None:
    payload = _payload(plane, data)
    assert payload.count(b"private-row-text-") == 1
    assert payload.count(b"private-row-text-00007") == 1


def test_case_2_uuids_are_text_and_other_objects_are_refused(send: Send) -> None:
    rows = [{"u": uuid.UUID(int=5), "k": 1}]
    assert send(rows)["u"].to_list() == ["00000000-0000-0000-0000-000000000005"]
    for strange in ({1}, object(), 1j):
        with pytest.raises(UnsupportedValueError, match=r"Column 'u', row 1: .* has no form on the wire"):
            send([{"u": None}, {"u": strange}])


def test_case_3_late_keys_are_columns(send: Send) -> None:
    frame = send([{"sku": n} for n in range(150)] + [{"sku": 150, "note": "late"}])
    assert frame.columns == ["sku", "note"]
    assert frame.row(150) == (150, "late")
    assert frame["note"].null_count() == 150


def test_case_4_late_values_survive_or_are_refused_by_row(send: Send) -> None:
    assert send([{"a": 1}] * 200 + [{"a": 2.9}])["a"].to_list() == [1.0] * 200 + [2.9]
    decimals = send([{"a": Decimal("1.2")}] * 200 + [{"a": Decimal("1.2345")}])["a"].to_list()
    assert decimals == [Decimal("1.2")] * 200 + [Decimal("1.2345")]
    for first, late in ((True, 7), (1, "n/a"), ("x", 1.5)):
        with pytest.raises(UnsupportedValueError, match="Column 'a', row 200"):
            send([{"a": first}] * 200 + [{"a": late}])
    assert send([{"a": None}] * 200 + [{"a": "late"}])["a"].to_list()[-1] == "late"


def test_case_6_words_and_a_number(send: Send) -> None:
    with pytest.raises(UnsupportedValueError, match="Column 'mode', row 2: int in a column of str") as caught:
        send(pd.DataFrame({"mode": ["idle", "run", 7]}))
    assert caught.value.hint
    with pytest.raises(UnsupportedValueError, match="Column 's', row 1: str in a column of dict"):
        send([{"s": {"a": 1}}, {"s": "n/a"}])


def test_case_8_nullable_integers_stay_integers(send: Send) -> None:
    for data in (
        pl.DataFrame({"id": [9007199254740993, None]}),
        [{"id": 9007199254740993}, {"id": None}],
        pd.DataFrame({"id": pd.array([9007199254740993, None], dtype="Int64")}),
    ):
        frame = send(data)
        assert frame.schema == {"id": pl.Int64}
        assert frame["id"].to_list() == [9007199254740993, None]
    # pandas has lost it before we see it: the column is one of floats, and shown as one.
    assert send(pd.DataFrame([{"id": 9007199254740993}, {"id": None}])).schema == {"id": pl.Float64}


def test_case_10_indexes_become_columns(send: Send) -> None:
    frame = send(pd.DataFrame({"px": [1, 2]}, index=pd.Index(["A", "B"], name="sym")))
    assert frame.to_dict(as_series=False) == {"sym": ["A", "B"], "px": [1, 2]}
    with pytest.raises(ColumnNameError, match="The index would become column 'px'"):
        send(pd.DataFrame({"px": [1, 2]}, index=pd.Index(["A", "B"], name="px")))


def test_case_12_mixed_zones_are_refused(send: Send) -> None:
    naive, aware = pd.Timestamp("2021-06-01 09:00"), pd.Timestamp("2021-06-01 09:00", tz="Asia/Tokyo")
    mixed = pd.Series([naive, aware], dtype=object)
    for data in (pd.DataFrame({"s": mixed}), [{"s": naive}, {"s": aware}]):
        with pytest.raises(UnsupportedValueError, match="Column 's', row 1: .* with and without time zone"):
            send(data)
    assert send([{"s": aware}])["s"].dtype == pl.Datetime("us", "Asia/Tokyo")


def test_case_13_wide_decimals_and_nan(send: Send) -> None:
    for value in (Decimal("1" * 40 + ".25"), Decimal("NaN")):
        with pytest.raises(UnsupportedValueError, match="Column 'd', row 0"):
            send([{"d": value}])
    with pytest.raises(UnsupportedTypeError, match=r"Column 'd' is decimal256\(60, 2\)"):
        send(pa.table({"d": pa.array([Decimal(1)], pa.decimal256(60, 2))}))


def test_case_14_readers_are_read_once_and_closed_relations_are_named(send: Send) -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("select * from range(10) t(n)")
        assert send(relation.to_arrow_reader(3))["n"].to_list() == list(range(10))
        assert send(relation)["n"].to_list() == list(range(10))
    with pytest.raises(PublishError, match="its connection is closed") as caught:
        send(relation)
    assert "keep the connection open" in caught.value.hint


def test_case_16_run_ends_and_list_views_are_decoded(send: Send) -> None:
    assert send(pa.table({"r": pc.run_end_encode(pa.array([7] * 50))}))["r"].to_list() == [7] * 50
    assert send(pa.table({"l": pa.array([[1], [2]], pa.list_view(pa.int64()))}))["l"].to_list() == [[1], [2]]
    with pytest.raises(UnsupportedTypeError, match="union"):
        send(pa.table({"u": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])}))


@pytest.mark.long
@pytest.mark.parametrize("nested", [False, True])
def test_case_17_more_than_two_gibibytes_of_text(send: Send, nested: bool) -> None:
    half = pa.array(["x" * 2**20] * 1100)
    column = (
        pa.chunked_array([half] * 2)
        if not nested
        else pa.chunked_array([pa.StructArray.from_arrays([half], ["a"])] * 2)
    )
    frame = send(pa.table({"s": column}))
    texts = frame["s"].struct.field("a") if nested else frame["s"]
    assert texts.len() == 2200
    assert texts.str.len_bytes().unique().to_list() == [2**20]


@pytest.mark.parametrize(
    ("data", "shape", "schema"),
    [
        ([], (0, 0), {}),
        ([{}], (1, 0), {}),
        (pl.DataFrame(schema={"a": pl.Int32}), (0, 1), {"a": pl.Int32}),
        (pl.DataFrame(height=3), (3, 0), {}),
        (pd.DataFrame(), (0, 0), {}),
    ],
    ids=["no rows", "a row without keys", "no rows with a schema", "rows without columns", "pandas"],
)
def test_case_19_nothing_to_return(plane: DataPlane, data: Any, shape: tuple[int, int], schema: Any) -> None:
    handle = plane.publish(data)
    assert handle.total_rows == shape[0]
    frame = resolve(resource_url=handle.resource_url)
    assert frame["_row_id"].to_list() == list(range(shape[0]))
    assert frame.drop("_row_id").schema == schema


def test_case_20_surrogates_and_metadata(send: Send) -> None:
    with pytest.raises(UnsupportedValueError, match="Column 's', row 1: text with a lone surrogate"):
        send([{"s": "ok"}, {"s": "a\ud800b"}])
    table = pa.table({"id": [1]}).replace_schema_metadata({b"\xff": b"\xff"})
    assert send(table)["id"].to_list() == [1]


def test_case_21_row_ids(plane: DataPlane) -> None:
    with pytest.raises(ColumnNameError, match="already called '_row_id'"):
        plane.publish(pl.DataFrame({"_row_id": [9, 9], "v": [1, 2]}))
    url = plane.publish(pl.DataFrame({"v": [10, 11]})).resource_url
    for row_ids, expected in (
        (["0"], [10]), ([0.0], [10]), ([0, 0], [10, 10]), ([1, 0], [11, 10]), ([], []), ("[0, 1]", [10, 11]),
    ):  # fmt: skip
        assert resolve(resource_url=url, row_ids=row_ids)["v"].to_list() == expected
        abstract = [{"_row_id": row_id} for row_id in dict.fromkeys(row_ids)] if row_ids != "[0, 1]" else []
        assert resolve(json.dumps(abstract), url)["v"].to_list() == list(dict.fromkeys(expected if abstract else []))
    for bad, shown in ((-1, "-1"), (True, "true"), (1.5, "1.5"), ("x", "x")):
        with pytest.raises(SelectionError, match=shown):
            resolve(resource_url=url, row_ids=[bad])
    with pytest.raises(RowOutOfRangeError, match="99"):
        resolve(resource_url=url, row_ids=[99])


# --- b) Arrow IPC over HTTP -------------------------------------------------------------------------------------------


TOKEN = f"{wire.TOKEN_PREFIX}{'a' * wire.TOKEN_RANDOM_CHARS}"


class RawServer:
    """Answers every request with the same bytes, then closes the connection."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"{self.origin}{wire.DATA_PREFIX}{TOKEN}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (more := connection.recv(65536)):
                    head += more
                if head.startswith(b"STOP"):
                    return
                with contextlib.suppress(OSError):
                    connection.sendall(self._answer)

    def resolve(self, **limits: Any) -> pl.DataFrame:
        """As a consumer that may call this server and does not trust it."""
        settings = Settings(**{"deadline_seconds": 120, **limits})
        return resolve(resource_url=self.url, settings=settings, policy=PeerPolicy(allow=[self.origin]))

    def __enter__(self) -> RawServer:
        return self

    def __exit__(self, *exc: object) -> None:
        with socket.create_connection(self._listener.getsockname()) as connection:
            connection.sendall(b"STOP\r\n\r\n")
        self._thread.join(120)
        self._listener.close()


def _answer(body: bytes, rows: int, *, length: int | None = None) -> bytes:
    """An answer of wire version 1, its checksum that of the bytes which are sent."""
    head = [
        "HTTP/1.1 200 OK", f"Content-Type: {wire.ARROW_STREAM}", f"{wire.H_VERSION}: 1", f"{wire.H_ROWS}: {rows}",
        f"{wire.H_CHECKSUM}: {write.checksum([body])}", f"Content-Length: {len(body) if length is None else length}",
    ]  # fmt: skip
    return "\r\n".join([*head, "", ""]).encode() + body


def _stream(table: pa.Table, chunk: int | None = None, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return bytes(sink.getvalue())


def _numbered(columns: dict[str, Any], rows: int) -> pa.Table:
    ids = pa.field("_row_id", pa.int64(), nullable=False)
    table = pa.table(columns)
    return pa.Table.from_arrays([pa.array(range(rows)), *table.columns], schema=pa.schema([ids, *table.schema]))


TABLE = _numbered({"n": range(1000)}, 1000)
WHOLE = _stream(TABLE, 100)
FOUR = len(_stream(TABLE[:400], 100)) - len(END_OF_STREAM)
SCHEMA = len(_stream(TABLE[:0])) - len(END_OF_STREAM)
CUTS = {"4 of 10 batches": FOUR, "2 bytes more": FOUR + 2, "schema only": SCHEMA}


def test_case_23_the_whole_stream_is_accepted() -> None:
    with RawServer(_answer(WHOLE, 1000)) as server:
        assert server.resolve()["n"].to_list() == list(range(1000))


@pytest.mark.parametrize("end", [b"", END_OF_STREAM], ids=["cut", "with an end mark"])
@pytest.mark.parametrize("cut", CUTS)
def test_case_23_a_cut_stream_is_an_error(cut: str, end: bytes) -> None:
    body = WHOLE[: CUTS[cut]] + end
    with RawServer(_answer(body, 1000, length=len(WHOLE))) as server, pytest.raises(TransferFailedError):
        server.resolve(deadline_seconds=0.5)  # the fetch resumes for as long as there is time
    # A server that says itself that this was all: the announced rows tell, and the end mark.
    with RawServer(_answer(body, 1000)) as server, pytest.raises(BadBodyError):
        server.resolve()


def test_case_24_half_a_body_in_chunks_that_end_cleanly_is_an_error() -> None:
    half = WHOLE[: len(WHOLE) // 2]
    head = _answer(half, 1000).partition(b"\r\n\r\n")[0].replace(b"Content-Length", b"X-Was")
    answer = head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + f"{len(half):x}\r\n".encode() + half + b"\r\n0\r\n\r\n"
    with RawServer(answer) as server, pytest.raises((TransferFailedError, BadBodyError)):
        server.resolve(deadline_seconds=0.5)


def test_case_24_our_server_breaks_the_connection(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any client sees that bytes are missing; ours asks for the rest, and has all or nothing."""
    handle = plane.publish(pl.DataFrame({"n": range(300_000)}))
    whole = write.Encoded.slices

    def halfway(encoded: write.Encoded) -> Iterator[memoryview]:
        yield next(whole(encoded))
        raise RuntimeError("disk on fire")

    monkeypatch.setattr(write.Encoded, "slices", halfway)
    parts = urlsplit(handle.resource_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request("GET", parts.path, headers={"Accept": wire.ARROW_STREAM})
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        connection.getresponse().read()
    connection.close()
    policy = PeerPolicy(allow=[plane.base_url])
    frame = resolve(resource_url=handle.resource_url, policy=policy, settings=Settings(deadline_seconds=30))
    assert frame["n"].to_list() == list(range(300_000))


def test_case_25_tiny_streams_with_huge_results_are_refused() -> None:
    zeros = np.zeros(2**25, "i8")
    zipped = _stream(pa.table({"_row_id": zeros, "z": zeros}), compression="zstd")
    assert len(zipped) < 100_000
    with RawServer(_answer(zipped, 2**25)) as server, pytest.raises((BadBodyError, TooLargeError)):
        server.resolve()
    nulls = _stream(pa.table({"n": pa.nulls(2**31 - 2)}))
    for rows in (2**31 - 2, 1000):
        with RawServer(_answer(nulls, rows)) as server, pytest.raises((BadBodyError, TooLargeError)):
            server.resolve()


def test_case_25_a_false_size_prefix_allocates_nothing() -> None:
    zipped = _stream(_numbered({"z": np.zeros(2**16, "i8")}, 2**16), compression="lz4")
    size = (2**16 * 8).to_bytes(8, "little")
    assert zipped.count(size)
    body = zipped.replace(size, (1 << 46).to_bytes(8, "little"))
    with RawServer(_answer(body, 2**16)) as server, pytest.raises((BadBodyError, TooLargeError)):
        server.resolve()


def _file() -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("body", [b"<html>502</html>", _file(), b""], ids=["HTML", "Arrow file", "nothing"])
def test_case_26_what_is_no_stream_is_our_error(body: bytes) -> None:
    with RawServer(_answer(body, 1000)) as server, pytest.raises(BadBodyError):
        server.resolve()


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_case_26_flipped_bytes_are_our_errors(compression: str | None) -> None:
    """With a checksum that fits, as of a server that is broken itself; the faults' tests try many more."""
    rng = random.Random(26)
    texts = [f"text {i} that is longer than a view" for i in range(50)]
    columns = {"s": texts, "v": pa.array(texts, pa.string_view()), "l": [[i] for i in range(50)]}
    valid = bytearray(_stream(_numbered(columns, 50), 20, compression))
    refused = 0
    for _ in range(60):
        broken = valid.copy()
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        with RawServer(_answer(bytes(broken), 50)) as server:
            try:
                frame = server.resolve()
            except S2SPError:
                refused += 1
            else:
                assert frame.height == 50
    assert refused > 20


def test_values_arrive_in_python_as_they_left(plane: DataPlane) -> None:
    """The same path once more for rows, whose values a consumer written in plain Python gets."""
    rows = [{"d": dt.date(2020, 7, 1), "x": Decimal("1.10"), "l": [1, None], "b": b"\xff", "n": None}]
    url = plane.publish(rows).resource_url
    assert resolve_form(Options.of(), Sources(resource_url=url), Form.ROWS) == [{"_row_id": 0, **rows[0]}]
