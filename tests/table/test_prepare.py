"""Large flat tables are written while their values are still being looked at; nobody gets a handle before all are good."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from framewire import DataPlane, Settings, fetch, to_table
from framewire.errors import UnsupportedValueError
from framewire.table import prepare
from framewire.table._check import can_wait

ROWS = 3_000_000
LONG = b"a text that is longer than a view"


@pytest.fixture(scope="module")
def numbers() -> pa.Table:
    return pa.table({f"n{i}": np.arange(ROWS, dtype=np.int64) for i in range(3)})


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with DataPlane(Settings(memory_budget_bytes=1 << 33)) as one:
        yield one


def _views(values: bytes, *, kind: pa.DataType | None = None) -> pa.Array:
    """``ROWS`` texts of 33 bytes, one behind the other."""
    data = np.frombuffer(values, np.uint8)
    words = np.zeros((ROWS, 4), np.int32)
    words[:, 0] = len(LONG)
    words[:, 1] = np.frombuffer(data.reshape(-1, len(LONG))[:, :4].tobytes(), np.int32)
    words[:, 3] = np.arange(ROWS) * len(LONG)
    return pa.Array.from_buffers(kind or pa.string_view(), ROWS, [None, pa.py_buffer(words), pa.py_buffer(values)])


def test_only_large_flat_tables_wait(numbers: pa.Table) -> None:
    assert can_wait(numbers)
    assert can_wait(numbers.append_column("v", _views(LONG * ROWS)))
    assert not can_wait(numbers.slice(0, 1000))
    assert not can_wait(numbers.append_column("s", pa.array(["x"] * ROWS)))
    assert not can_wait(numbers.append_column("d", pa.array([0] * ROWS, pa.int64()).cast(pa.date64())))
    assert not can_wait(pa.concat_tables([numbers, numbers.slice(0, 10)]))


def test_a_good_table_is_the_same_either_way(numbers: pa.Table, plane: DataPlane) -> None:
    table = numbers.append_column("v", _views(LONG * ROWS))
    prepared = prepare(table)
    prepared.confirm()
    assert prepared.table.equals(to_table(table))
    got = fetch(plane.publish(table).resource_url, ["0-3", ROWS - 1])
    assert got["v"].to_pylist() == [LONG.decode()] * 5


def test_an_invalid_value_in_a_written_table_is_named_and_nothing_is_kept(numbers: pa.Table, plane: DataPlane) -> None:
    values = bytearray(LONG * ROWS)
    values[len(LONG) * (ROWS - 7) + 20] = 0xFF
    table = numbers.append_column("v", _views(bytes(values)))
    open_files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(UnsupportedValueError, match=f"Column 'v', row {ROWS - 7}"):
        plane.publish(table)
    stats = plane.stats()
    assert (stats.bodies, stats.reserved_bytes, stats.held_bytes) == (0, 0, 0)
    assert len(os.listdir("/proc/self/fd")) == open_files


@pytest.mark.parametrize(("word", "value"), [(0, 2**31 - 1), (2, 7), (3, 2**31 - 40), (3, -5), (0, -1)])
def test_views_that_lead_astray_are_not_followed(numbers: pa.Table, word: int, value: int) -> None:
    views = _views(LONG * ROWS)
    words = np.frombuffer(views.buffers()[1], np.int32).reshape(-1, 4).copy()
    words[ROWS - 3, word] = value
    broken = pa.Array.from_buffers(pa.string_view(), ROWS, [None, pa.py_buffer(words), views.buffers()[2]])
    with pytest.raises(UnsupportedValueError, match="column 'v'|Column 'v'"):
        to_table(numbers.append_column("v", broken))


def test_a_last_view_into_a_buffer_that_is_not_there_is_named(numbers: pa.Table) -> None:
    """All views before it cover the one buffer from end to end, so that it seems to begin the next."""
    views = _views(LONG * ROWS)
    words = np.frombuffer(views.buffers()[1], np.int32).reshape(-1, 4).copy()
    words[-1, 2:] = (7, 0)
    data = views.buffers()[2].slice(0, len(LONG) * (ROWS - 1))
    broken = pa.Array.from_buffers(pa.string_view(), ROWS, [None, pa.py_buffer(words), data])
    with pytest.raises(UnsupportedValueError, match="Column 'v'"):
        to_table(numbers.append_column("v", broken))


def test_what_hides_rows_is_validated_first(numbers: pa.Table, plane: DataPlane) -> None:
    """Views out of order have to be followed to see what they show."""
    table = numbers.append_column("v", _views(LONG * ROWS))
    reverse = pa.array(np.arange(ROWS)[::-1])
    words = np.frombuffer(table["v"].chunk(0).buffers()[1], np.int32).reshape(-1, 4)[::-1][: ROWS // 2].copy()
    half = pa.Array.from_buffers(pa.string_view(), ROWS // 2, [None, pa.py_buffer(words), pa.py_buffer(LONG * ROWS)])
    hiding = table.select(["n0", "n1", "n2"]).take(reverse).slice(0, ROWS // 2).append_column("v", half)
    handle = plane.publish(hiding)
    assert handle.nbytes < ROWS // 2 * (16 + len(LONG) + 4 * 8 + 1)
    assert threading.active_count() < 20
