"""The alerts example: rows in the public API's shape, and the documented pair at work on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from mcp import Client

Load = Callable[[str], ModuleType]


@pytest.mark.anyio
async def test_the_rows_are_varied_as_an_api_is(load: Load) -> None:
    weather = load("alerts/weather_server.py")
    rows = [row for area in ("CA", "CO", "FL", "NY", "TX") for row in await weather.get_alerts(area)]
    assert len(rows) == 41
    assert len({row["id"] for row in rows}) == 41
    columns = {name for row in rows for name in row}
    assert 30 <= len(columns) <= 35
    assert any(len(row) < len(rows[0]) for row in rows), "some rows should lack keys"
    assert any(row["ends"] is None for row in rows)
    assert {len(row["references"]) for row in rows} == {0, 1, 2}
    assert len({tuple(row["parameters"]) for row in rows}) > 5


@pytest.mark.anyio
async def test_the_documented_pair_draws_the_chosen_alerts(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weather, stats = load("alerts/weather_server.py"), load("alerts/stats_server.py")
    monkeypatch.setattr(stats, "OUT", tmp_path / "out")
    received: list[dict[str, object]] = []
    draw = stats.generate_chart

    def watched(rows: list[dict[str, object]]) -> str:
        received.extend(rows)
        return str(draw(rows))

    monkeypatch.setattr(stats, "generate_chart", watched)
    async with Client(weather.server) as source, Client(stats.server) as sink:
        result = await source.call_tool("get_alerts", {"area": "CA", "abstract_domains": "event,severity"})
        reply = json.loads(result.content[0].text)  # type: ignore[union-attr]
        severe = [row for row in reply["abstract"] if row["severity"] == "Severe"]
        arguments = {"abstract_data": json.dumps(severe), "resource_url": reply["resource_url"]}
        answer = await sink.call_tool("draw_chart", arguments)
    text = answer.content[0].text  # type: ignore[union-attr]
    assert not answer.is_error, text
    summary = json.loads(text)
    assert 0 < summary["alerts"] == len(severe) < reply["total_rows"]
    assert Path(summary["chart"]).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")

    # Nested values arrive as they left, but that a key absent from a row (or from a nested object) is there as None.
    originals = {row["id"]: row for row in await weather.get_alerts("CA")}
    assert {row["id"] for row in received} <= set(originals)
    for row in received:
        assert _without_none({k: v for k, v in row.items() if k != "_row_id"}) == _without_none(originals[row["id"]])


def _without_none(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_none(inner) for inner in value]
    return value
