"""Builds one Arrow array from plain values of one kind: exact, or refused by column, row and kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from framewire.values.infer._kinds import ValueKind
from framewire.values.infer._temporal import build_datetimes, build_durations, build_times
from framewire.values.location import ValueLocation

_MAX_INT64: Final = (1 << 63) - 1
_MIN_INT64: Final = -(1 << 63)
_MAX_UINT64: Final = (1 << 64) - 1
_MAX_DIGITS: Final = 38
"""Digits of ``decimal128``, the limit in Polars too."""


def _bools(values: Sequence[Any], location: ValueLocation) -> Any:
    return pa.array(values, pa.bool_())


def _ints(values: Sequence[Any], location: ValueLocation) -> Any:
    """``int64``; ``uint64`` where a value needs it and none is negative."""
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        pass
    lowest = min(v for v in values if v is not None)
    for at, value in enumerate(values):
        if value is None or _MIN_INT64 <= value <= (_MAX_INT64 if lowest < 0 else _MAX_UINT64):
            continue
        fits_beside_none = 0 <= value <= _MAX_UINT64
        why = "an integer above int64 beside negative ones" if fits_beside_none else "an integer beyond 64 bits"
        raise location.refuse(at, int, why, "Use decimal.Decimal (up to 38 digits) or text.")
    return pa.array(values, pa.uint64())


def _floats(values: Sequence[Any], location: ValueLocation) -> Any:
    # from_pandas=False, which is the default for lists: NaN stays NaN and does not become null.
    return pa.array(values, pa.float64())


def ints_and_floats(values: Sequence[Any], location: ValueLocation) -> Any:
    """``float64``, when it holds every integer exactly (all up to 2^53, and some above)."""
    for at, value in enumerate(values):
        if type(value) is int and not _is_double(value):
            why = "an integer that no float64 holds exactly, in a column with floats"
            raise location.refuse(at, int, why, "Make the column all integers, all decimal.Decimal or text.")
    return pa.array([None if v is None else float(v) for v in values], pa.float64())


def _is_double(value: int) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False


def decimals(values: Sequence[Any], location: ValueLocation) -> Any:
    """``decimal128`` with the fewest digits that hold every value as written, at most 38. Integers count."""
    values = [Decimal(v) if type(v) is int else v for v in values]
    present = [v for v in values if v is not None]
    if all(map(Decimal.is_finite, present)) and (found := _decimal_type(present)) is not None:
        return pa.array(values, found)
    whole = scale = 0
    for at, value in enumerate(values):
        if value is None:
            continue
        if not value.is_finite():
            raise location.refuse(at, Decimal, "a Decimal that is not finite", "Use None, or floats, which have NaN.")
        whole = max(whole, value.adjusted() + 1)
        scale = max(scale, -int(value.as_tuple().exponent))
        if max(whole, 0) + scale > _MAX_DIGITS:
            why = f"with this Decimal the column needs {max(whole, 0) + scale} digits, and it can have {_MAX_DIGITS}"
            raise location.refuse(at, Decimal, why, "Round with quantize(), drop zeros with normalize(), or use text.")
    return pa.array(values, pa.decimal128(max(1, whole + scale), scale))


def _decimal_type(values: Sequence[Decimal]) -> pa.DataType | None:
    """Infer the type in one pass of pyarrow's; None where it is not a ``decimal128`` with a scale from 0."""
    try:
        found = pa.infer_type(values)
    except pa.ArrowInvalid:  # more than 76 digits
        return None
    return found if pa.types.is_decimal128(found) and 0 <= found.scale <= found.precision else None


def _texts(values: Sequence[Any], location: ValueLocation) -> Any:
    """``large_string``: 64-bit offsets, so that more than 2 GiB stays one array whatever it is nested in."""
    try:
        return pa.array(values, pa.large_string())
    except UnicodeError:
        at = next(at for at, value in enumerate(values) if value is not None and not is_unicode(value))
        hint = "Repair it where it was decoded, or use value.encode('utf-8', 'replace').decode()."
        raise location.refuse(at, str, "text with a lone surrogate, which is not valid Unicode", hint) from None


def is_unicode(text: str) -> bool:
    """Whether text can be encoded as UTF-8, which lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(values: Sequence[Any], location: ValueLocation) -> Any:
    return pa.array(values, pa.large_binary())


def _dates(values: Sequence[Any], location: ValueLocation) -> Any:
    return pa.array(values, pa.date32())


BUILDERS: Final[Mapping[ValueKind, Callable[[Sequence[Any], ValueLocation], Any]]] = {
    ValueKind.BOOL: _bools,
    ValueKind.INT: _ints,
    ValueKind.FLOAT: _floats,
    ValueKind.DECIMAL: decimals,
    ValueKind.TEXT: _texts,
    ValueKind.BYTES: _bytes,
    ValueKind.DATE: _dates,
    ValueKind.DATETIME: build_datetimes,
    ValueKind.TIME: build_times,
    ValueKind.DURATION: build_durations,
}
"""Builders of flat columns; None is null in all of them."""

_SIZED: Final = frozenset(np.dtype(code).type for code in "bhilqBHILQefd")
"""numpy's integers and floats of up to 64 bits. Not by ``issubclass``: timedelta64 is a subclass of the integers."""


def keep_width(values: Sequence[Any], kind: type) -> Any | None:
    """A column of one numpy number type as that type (``int32`` stays ``int32``); None for any other type."""
    if kind not in _SIZED:
        return None
    mask = np.fromiter((v is None for v in values), dtype=bool, count=len(values))
    data = np.array([0 if v is None else v for v in values], dtype=kind)
    return pa.array(data, mask=mask, from_pandas=False)
