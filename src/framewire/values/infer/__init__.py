"""Python values to Arrow: exact, or refused by column, row and kind. The rule is ``docs/reference/types.md``.

A column's type comes from all of its values. ``set(map(type, values))`` runs in C and says which kinds there are: of
one plain kind, pyarrow converts the whole column; anything else is inspected value by value. pyarrow's own inference is
not used for mixed values: it truncates 2.9 beside 1, reads True beside 1, merges time zones and drops late keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from framewire.arrow.take import rows_without_columns
from framewire.errors import ColumnNameError, NotATableError
from framewire.values.infer._build import BUILDERS, decimals, ints_and_floats, is_unicode, keep_width
from framewire.values.infer._columns import columns_of
from framewire.values.infer._kinds import EXACT, ValueKind, classify, hint_for
from framewire.values.infer._temporal import zone_of
from framewire.values.location import MAX_NESTING, ValueLocation, name_of

__all__ = ["ValueKind", "classify", "infer_column", "infer_rows", "is_unicode", "zone_of"]

_NUMBERS = {
    frozenset({ValueKind.INT, ValueKind.FLOAT}): ints_and_floats,
    frozenset({ValueKind.INT, ValueKind.DECIMAL}): decimals,
}


def infer_column(values: Sequence[Any], name: str) -> pa.Array:
    """Convert one column of Python values to Arrow.

    Args:
        values: Values of any length; None, ``pd.NA`` and ``pd.NaT`` are null. NaN is a float.
        name: The column's name, for errors.

    Returns:
        An array of the same length: ``null``, ``bool``, ``int64`` (or ``uint64``), ``float64``, ``decimal128``,
        ``large_string``, ``large_binary``, ``date32``, ``time64[us]``, ``timestamp[us or ns]``, ``duration[us or ns]``,
        ``large_list``, ``struct``, or the width of a column of one numpy number type.

    Raises:
        UnsupportedValueError: A value has no exact form in its column; names column, row and kind, never the value.
    """
    return _column(values if isinstance(values, (list, tuple)) else list(values), ValueLocation(name))


def infer_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Convert rows to a table.

    Args:
        rows: One mapping per row. Columns are all keys of all rows, in the order in which they are first seen; a missing
            key is null.

    Returns:
        ``len(rows)`` rows, also where no row has a key.

    Raises:
        NotATableError: A row is not a mapping.
        ColumnNameError: A key is not Unicode text.
        UnsupportedValueError: As :func:`infer_column`.
    """
    kinds: set[type] = set(map(type, rows))
    dicts = _plain_rows(rows, kinds) if kinds - {dict} else rows
    columns = columns_of(dicts if isinstance(dicts, (list, tuple)) else list(dicts))
    names = [_column_name(key) for key in columns]
    if not names:
        return rows_without_columns(len(rows))
    arrays = [_column(values, ValueLocation(name)) for name, values in zip(names, columns.values(), strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def _plain_rows(rows: Sequence[Any], kinds: set[type]) -> list[dict[Any, Any]]:
    """Copy rows of other mapping types to dicts: reading a defaultdict by key would add the key to the caller's row."""
    strange = {kind for kind in kinds if not issubclass(kind, Mapping)}
    if strange:
        at = next(at for at, row in enumerate(rows) if type(row) in strange)
        kind = name_of(type(rows[at]))
        raise NotATableError(f"Row {at} is of type {kind}.", hint=f"Every row must be a dict. {_row_hint(rows[at])}")
    return [row if type(row) is dict else dict(row) for row in rows]


def _row_hint(row: Any) -> str:
    if row is None:
        return "Leave the row out, or use {} for a row of nulls."
    if hasattr(row, "model_dump"):
        return "Use row.model_dump()."
    if hasattr(row, "_asdict") or hasattr(row, "__dataclass_fields__"):
        return hint_for(type(row))
    return "Name the values: {'column': value, ...}."


def _column_name(key: Any) -> str:
    if not isinstance(key, str):
        raise ColumnNameError(f"A row has a key of type {name_of(type(key))}.", hint="Keys are text: use str(key).")
    if not is_unicode(key):
        raise ColumnNameError(f"A row has the key {key!r}, which is not valid Unicode.", hint="Rename the column.")
    return str.__str__(key)


def _column(values: Sequence[Any], location: ValueLocation) -> Any:
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) == 1:
        only = next(iter(kinds))
        if (exact := EXACT.get(only)) is not None:
            return _one_kind(exact, values, location)
        if (sized := keep_width(values, only)) is not None:
            return sized
    return _mixed(values, kinds, location)


def _one_kind(kind: ValueKind, values: Sequence[Any], location: ValueLocation) -> Any:
    """Convert a column whose values are all plain and of one kind."""
    if kind is ValueKind.LIST:
        return _lists(values, location)
    if kind is ValueKind.STRUCT:
        return _structs(values, location)
    return BUILDERS[kind](values, location)


def _mixed(values: Sequence[Any], types: set[type], location: ValueLocation) -> Any:
    """Convert values of several types, of subclasses or of foreign scalars: made plain, then of one kind, or refused."""
    if any(classify(kind) == (ValueKind.MEMBER, None) for kind in types):
        values = _unwrap_members(values, location)
        return _column(values, location)
    found = {kind: classify(kind) for kind in types}
    for kind, plain in found.items():
        if plain is None:
            at = _first(values, {kind})
            raise location.refuse(at, kind, f"{name_of(kind)} has no form on the wire", hint_for(kind))
    known = {kind: plain for kind, plain in found.items() if plain is not None}
    plain_values = [_plain(value, at, known, location) for at, value in enumerate(values)]
    kinds = frozenset(kind for kind, _ in known.values()) - {ValueKind.NULL}
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) == 1:
        return _one_kind(next(iter(kinds)), plain_values, location)
    if (numbers := _NUMBERS.get(kinds)) is not None:
        return numbers(plain_values, location)
    raise _conflict(values, known, location)


def _plain(value: Any, at: int, known: Mapping[type, tuple[ValueKind, Any]], location: ValueLocation) -> Any:
    if value is None:
        return None
    kind, convert = known[type(value)]
    if kind is ValueKind.NULL:
        return None
    if convert is None:
        return value
    try:
        return convert(value)
    except Exception as exc:  # a 0-d array, a released memoryview: whatever the object does
        why = f"{name_of(type(value))} that cannot be read ({name_of(type(exc))})"
        raise location.refuse(at, type(value), why, hint_for(type(value))) from exc


def _unwrap_members(values: Sequence[Any], location: ValueLocation) -> list[Any]:
    """Replace Enum members by their values, which must be plain text or integers."""
    plain = []
    for at, value in enumerate(values):
        kind: type = type(value)
        inner = value.value if classify(kind) == (ValueKind.MEMBER, None) else value
        if inner is not value and type(inner) not in (int, str):
            why = f"an enum member whose value is a {name_of(type(inner))}"
            raise location.refuse(
                at, type(value), why, "Members cross as their values: text or integers. Use value.name."
            )
        plain.append(inner)
    return plain


def _first(values: Sequence[Any], types: Iterable[type]) -> int:
    wanted = set(types)
    return next(at for at, value in enumerate(values) if type(value) in wanted)


def _conflict(values: Sequence[Any], known: Mapping[type, tuple[ValueKind, Any]], location: ValueLocation) -> Exception:
    """Build the error for a column of two kinds; it names the first row whose kind conflicts with an earlier one."""
    seen: dict[ValueKind, tuple[str, int]] = {}
    for at, value in enumerate(values):
        python_type: type = type(value)
        if value is None or (kind := known[python_type][0]) in seen or kind is ValueKind.NULL:
            continue
        for other, (name, first) in seen.items():
            if frozenset({kind, other}) not in _NUMBERS:
                why = f"{name_of(python_type)} in a column of {name} (first in row {location.row(first)})"
                return location.refuse(at, python_type, why, _conflict_hint({kind, other}))
        seen[kind] = (name_of(python_type), at)
    raise AssertionError(f"no conflict between {known}")


def _conflict_hint(kinds: set[ValueKind]) -> str:
    if kinds == {ValueKind.BOOL, ValueKind.INT}:
        return "Use int(flag), or keep flags and numbers in columns of their own."
    if kinds == {ValueKind.DATE, ValueKind.DATETIME}:
        return "Make them all dates or all datetimes."
    if kinds == {ValueKind.FLOAT, ValueKind.DECIMAL}:
        return "Make them all decimal.Decimal or all floats."
    return "A column holds one kind of value: convert them to one kind, or use None where a value is missing."


def _lists(values: Sequence[Any], location: ValueLocation) -> Any:
    """Convert lists to ``large_list``; the item type is inferred from the items of all rows together."""
    location = _deeper(location)
    lengths = [0 if value is None else len(value) for value in values]
    offsets = list(accumulate(lengths, initial=0))
    items = list(chain.from_iterable(value for value in values if value is not None))
    child = _column(items, location.items(offsets))
    mask = _mask([value is None for value in values])
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), child, mask=mask)


def _structs(values: Sequence[Any], location: ValueLocation) -> Any:
    """Convert dicts to a ``struct`` of all keys of all rows, in first-seen order."""
    location = _deeper(location)
    columns = columns_of([{} if value is None else value for value in values])
    names = [_field_name(key, values, location) for key in columns]
    missing = [value is None for value in values]
    if not names:
        return pa.array([None if gone else {} for gone in missing], pa.struct([]))
    children = [_column(items, location.field(name)) for name, items in zip(names, columns.values(), strict=True)]
    return pa.StructArray.from_arrays(children, names=names, mask=_mask(missing))


def _field_name(key: Any, values: Sequence[Any], location: ValueLocation) -> str:
    if isinstance(key, str) and "\0" not in key and is_unicode(key):
        return str.__str__(key)
    at = next(at for at, value in enumerate(values) if value is not None and key in value)
    why = f"a dict with a key of type {name_of(type(key))}, or with NUL or a lone surrogate in it"
    raise location.refuse(at, dict, why, "Keys are Unicode text without NUL: use str(key), or a list of pairs.")


def _mask(missing: list[bool]) -> pa.Array | None:
    return pa.array(missing, pa.bool_()) if any(missing) else None


def _deeper(location: ValueLocation) -> ValueLocation:
    if location.depth >= MAX_NESTING:
        raise location.refuse(0, "nesting", f"nested deeper than {MAX_NESTING} levels", "Flatten it, or use JSON text.")
    return location
