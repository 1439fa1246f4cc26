"""Nothing hidden survives a compaction, and nothing shown is changed by it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
from hypothesis import given, settings
from hypothesis import strategies as st

from framewire.arrow.compact import compact
from framewire.arrow.take import filter_rows, take_rows
from framewire.testing import EXTRA_KINDS, WIRE_KINDS, check_tables, exact_values, kinds_of, tables

PROFILE = settings.get_profile("long" if os.environ.get("FRAMEWIRE_LONG") == "1" else "default")
KINDS = WIRE_KINDS | EXTRA_KINDS


def _values(table: pa.Table) -> list[list[Any]]:
    return [exact_values(column) for column in table.columns]


def _buffers(array: pa.Array) -> list[pa.Buffer | None]:
    """Every buffer that the array reaches, dictionaries at any depth included (``Array.buffers`` leaves those out)."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return [*array.indices.buffers(), *_buffers(array.dictionary)]
    if pa.types.is_struct(kind):
        return [array.buffers()[0], *(b for i in range(kind.num_fields) for b in _buffers(array.field(i)))]
    if kind.num_fields:
        own = 1 if pa.types.is_fixed_size_list(kind) else 3 if "list_view" in str(kind).split("<")[0] else 2
        return [*array.buffers()[:own], *_buffers(array.values)]
    return list(array.buffers())


def _bytes_shown(array: Any) -> Any:
    """How many bytes the rows of an array need at the very most, in a layout that holds nothing else."""
    kind, rows = array.type, len(array)
    bitmap = (rows + 7) // 8
    if pa.types.is_dictionary(kind):
        return bitmap + rows * kind.index_type.bit_width // 8 + _bytes_shown(array.dictionary)
    if pa.types.is_struct(kind):
        return bitmap + sum(_bytes_shown(array.field(i)) for i in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        return bitmap + _bytes_shown(array.values)
    if kind.num_fields:
        return bitmap + 16 * (rows + 1) + _bytes_shown(array.values)
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_boolean(kind):
        return 2 * bitmap
    if kind.num_buffers == 2 and "view" not in str(kind):
        return bitmap + rows * kind.bit_width // 8
    texts = [value for value in array.to_pylist() if value is not None]
    return bitmap + 16 * (rows + 1) + sum(len(text.encode() if isinstance(text, str) else text) for text in texts)


def _check_exact(array: pa.Array, above: Any = False) -> None:
    """No offsets, no buffer longer than its rows need, no bit beyond the last row, nothing under nulls (or null parents)."""
    assert array.offset == 0
    kind = array.type
    if pa.types.is_null(kind):
        return
    assert sum(buffer.size for buffer in _buffers(array) if buffer) <= _bytes_shown(array)
    validity = array.buffers()[0]
    if validity is not None and len(array) % 8:
        assert validity[len(validity) - 1] >> (len(array) % 8) == 0
    hidden = array.is_null().to_numpy(zero_copy_only=False) | above
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            _check_exact(array.field(i), hidden)
    elif pa.types.is_dictionary(kind):
        _check_exact(array.indices, above)
        _check_exact(array.dictionary)
    elif pa.types.is_fixed_size_list(kind):
        assert len(array.values) == len(array) * kind.list_size
        _check_exact(array.values, np.repeat(hidden, kind.list_size))
    elif kind.num_fields:
        assert len(array.values) <= sum(len(scalar) for scalar, gone in zip(array, hidden, strict=True) if not gone)
        _check_exact(array.values)
    elif "view" in str(kind):
        assert not np.frombuffer(array.buffers()[1], "V16")[hidden].tobytes().strip(b"\0") if len(array) else True
    elif kind.num_buffers == 2 and not pa.types.is_boolean(kind) and kind.bit_width:
        slots = np.frombuffer(array.buffers()[1], np.uint8).reshape(len(array), -1) if len(array) else np.zeros((0, 1))
        assert not slots[hidden].any()


def test_compaction_keeps_all_values_and_nothing_else() -> None:
    def check(table: pa.Table) -> None:
        before = _values(table)
        small = compact(table)
        small.validate(full=True)
        assert small.schema.equals(table.schema, check_metadata=True)
        assert _values(small) == before
        assert _values(table) == before
        for column in small.columns:
            for chunk in column.chunks:
                if not pa.types.is_dictionary(chunk.type):  # several chunks may share one that each uses in part
                    _check_exact(chunk)
        assert compact(small) is small

    check_tables(check, kinds=KINDS, settings=PROFILE)


def test_what_is_written_depends_on_what_is_shown_only() -> None:
    """Two tables that show the same, over memory that differs, become the same bytes on the wire."""

    @PROFILE
    @given(tables(kinds=WIRE_KINDS - {"dictionary"}), st.data())
    def prop(table: pa.Table, data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.integers(0, max(table.num_rows - 1, 0)), max_size=5 if table.num_rows else 0))
        indices = pa.array(rows, pa.int64())
        taken, rebuilt = [], []
        for column in table.combine_chunks().columns:
            whole = column.chunk(0) if column.num_chunks else pa.array([], column.type)
            picked = take_rows(whole, indices)
            taken.append(picked)
            rebuilt.append(pa.concat_arrays([whole.slice(row, 1) for row in rows] or [whole.slice(0, 0)]))
        one, other = (compact(pa.Table.from_arrays(columns, schema=table.schema)) for columns in (taken, rebuilt))
        assert (
            _values(one) == _values(other) == [[exact_values(column)[row] for row in rows] for column in table.columns]
        )
        if not any("view" in kind for field in table.schema for kind in kinds_of(field.type)):
            assert _written(one) == _written(other)  # views may lie in their buffers in another order

    prop()


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def test_filter_equals_take() -> None:
    @PROFILE
    @given(tables(kinds=WIRE_KINDS, max_columns=1), st.data())
    def prop(table: pa.Table, data: st.DataObject) -> None:
        mask = data.draw(st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows))
        for chunk in table.column(0).chunks:
            kept = mask[: len(chunk)]
            filtered = filter_rows(chunk, pa.array(kept, pa.bool_()))
            filtered.validate(full=True)
            assert exact_values(filtered) == [v for v, keep in zip(exact_values(chunk), kept, strict=True) if keep]

    prop()
