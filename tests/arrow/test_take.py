from __future__ import annotations

import pyarrow as pa
import pytest

from framewire.arrow.take import take_table

ROWS = 50


@pytest.mark.parametrize("chunk", [1, 7, 50])
@pytest.mark.parametrize("wanted", [[], [0], [49, 0, 25, 25], list(range(50)), list(range(49, -1, -3))])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(ROWS)),
        pa.array([f"a text longer than a view {i}" if i % 3 else None for i in range(ROWS)], pa.string_view()),
        pa.array([{"a": f"a text longer than a view {i}"} for i in range(ROWS)], pa.struct([("a", pa.string_view())])),
        pa.array([[str(i)] * (i % 3) for i in range(ROWS)], pa.list_(pa.string_view())),
        pa.array([str(i % 4) for i in range(ROWS)]).dictionary_encode(),
        pa.nulls(ROWS),
    ],
    ids=lambda c: str(c.type),
)
def test_rows_of_any_chunking(column: pa.Array, wanted: list[int], chunk: int) -> None:
    chunks = [column.slice(i, chunk) for i in range(0, ROWS, chunk)]
    taken = take_table(pa.table({"c": pa.chunked_array(chunks)}), pa.array(wanted, pa.int64()))
    taken.validate(full=True)
    expected = column.to_pylist()
    assert taken["c"].to_pylist() == [expected[i] for i in wanted]
    assert taken.schema.field("c").type == column.type
