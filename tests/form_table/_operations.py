"""The ordinary operations of each library that a consumer may ask for, on a column ``x`` beside a number ``n``."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

Operation = Callable[[Any], object]

NAMES: Final = (
    "filter",
    "take",
    "sort",
    "equality",
    "group and count",
    "join",
    "concat",
    "to_csv",
    "to_json",
    "repr",
)


def polars_operations() -> dict[str, Operation]:
    import polars as pl

    return {
        "filter": lambda frame: frame.filter(pl.col("n") > 1),
        "take": lambda frame: frame[[2, 0]],
        "sort": lambda frame: frame.sort("x"),
        "equality": lambda frame: frame["x"] == frame["x"],
        "group and count": lambda frame: frame.group_by("x").len(),
        "join": lambda frame: frame.join(frame, on="x"),
        "concat": lambda frame: pl.concat([frame, frame]),
        "to_csv": lambda frame: frame.write_csv(),
        "to_json": lambda frame: frame.write_json(),
        "repr": repr,
    }


def arrow_operations() -> dict[str, Operation]:
    return {
        "filter": lambda table: table.filter(pc.greater(table["n"], 1)),
        "take": lambda table: table.take([2, 0]),
        "sort": lambda table: table.sort_by("x"),
        "equality": lambda table: pc.equal(table["x"], table["x"]),
        "group and count": lambda table: table.group_by("x").aggregate([("n", "count")]),
        "join": lambda table: table.join(table, "x", right_suffix="_right"),
        "concat": lambda table: pa.concat_tables([table, table]).combine_chunks(),
        "to_csv": lambda table: pyarrow.csv.write_csv(table, io.BytesIO()),
        "repr": lambda table: (repr(table), str(table["x"]), table.to_pylist()),
    }


def pandas_operations() -> dict[str, Operation]:
    import pandas as pd

    return {
        "filter": lambda frame: frame[frame["n"] > 1],
        "take": lambda frame: frame.take([2, 0]),
        "sort": lambda frame: frame.sort_values("x"),
        "equality": lambda frame: frame["x"] == frame["x"],
        "group and count": lambda frame: frame.groupby("x").size(),
        "join": lambda frame: frame.merge(frame, on="x"),
        "concat": lambda frame: pd.concat([frame, frame]),
        "to_csv": lambda frame: frame.to_csv(),
        "to_json": lambda frame: frame.to_json(),
        "repr": repr,
    }
