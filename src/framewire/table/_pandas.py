"""pandas frames as Arrow, index included. pandas is never imported here: a frame brings it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from framewire.arrow.take import rows_without_columns
from framewire.errors import ColumnNameError, UnsupportedTypeError
from framewire.table._check import check_names
from framewire.values.infer import ValueKind, classify, infer_column, zone_of

_TYPE_HINTS: Final[dict[str, str]] = {
    "PeriodDtype": "Use .dt.to_timestamp(), or .astype(str).",
    "IntervalDtype": "Use two columns, .array.left and .array.right, or .astype(str).",
}


def is_pandas(data: Any, name: str) -> bool:
    """Whether ``data`` is an instance of pandas' class ``name``."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, getattr(pandas, name))


def from_pandas(frame: Any, *, nan_is_null: bool) -> pa.Table:
    """A pandas frame as a table: its index levels first, then its columns. Only the default index is dropped.

    Args:
        frame: A ``pd.DataFrame``.
        nan_is_null: Whether NaN in numpy float and object columns becomes null, as everywhere in pandas.

    Raises:
        ColumnNameError: A name is not text or appears twice, names of index levels included.
        UnsupportedTypeError: A column has a dtype without an exact form on the wire.
        UnsupportedValueError: As for Python values, in object columns.
    """
    labels = list(frame.columns)
    levels = list(_index_levels(frame.index))
    _check_clash([name for name, _ in levels], labels)
    names = [name for name, _ in levels] + labels
    check_names(names)
    if not names:
        return rows_without_columns(len(frame))
    columns = [level for _, level in levels] + [frame.iloc[:, at] for at in range(len(labels))]
    arrays = [_column(series, str(name), nan_is_null) for name, series in zip(names, columns, strict=True)]
    return pa.table(arrays, names=[str(name) for name in names])


def _index_levels(index: Any) -> Iterator[tuple[Any, Any]]:
    """Names and values of the index levels that carry data. Unnamed ones are named as by ``reset_index``."""
    pandas = sys.modules["pandas"]
    if isinstance(index, pandas.MultiIndex):
        for number, name in enumerate(index.names):
            label = f"level_{number}" if name is None else name
            yield label, pandas.Series(index.get_level_values(number).array, copy=False)
        return
    is_default = isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
    if not is_default:
        label = "index" if index.name is None else index.name
        yield label, pandas.Series(index.array, copy=False)


def _check_clash(levels: list[Any], labels: list[Any]) -> None:
    for name in levels:
        if name in labels:
            raise ColumnNameError(
                f"The index would become column {name!r}, and there is a column {name!r} already.",
                hint="Rename one of them (df.rename_axis('name')), or drop the index with df.reset_index(drop=True).",
            )


def _column(series: Any, name: str, nan_is_null: bool) -> Any:
    """Convert one column by its dtype."""
    pandas = sys.modules["pandas"]
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return _numpy_column(series, dtype, name, nan_is_null)
    if isinstance(dtype, pandas.ArrowDtype):
        return series.array.__arrow_array__()
    if isinstance(dtype, pandas.CategoricalDtype):
        return _categorical(series, name)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return _zoned(series, dtype, name)
    if isinstance(dtype, pandas.StringDtype):
        return _texts(series, name)
    if isinstance(dtype, pandas.SparseDtype):
        return _column(series.sparse.to_dense(), name, nan_is_null)
    if type(dtype).__name__ in _TYPE_HINTS:
        raise UnsupportedTypeError.of_column(name, dtype, _TYPE_HINTS[type(dtype).__name__])
    if hasattr(series.array, "__arrow_array__") and type(dtype).__module__.partition(".")[0] == "pandas":
        return series.array.__arrow_array__()  # the nullable numbers and booleans: NA is null, NaN stays NaN
    return infer_column(_missing_as_none(list(series), nan_is_null), name)  # another library's dtype: by its values


def _numpy_column(series: Any, dtype: np.dtype[Any], name: str, nan_is_null: bool) -> Any:
    if dtype.kind == "O":
        return infer_column(_missing_as_none(series.tolist(), nan_is_null), name)
    if dtype.kind not in "biufMm" or dtype.itemsize > 8:
        raise UnsupportedTypeError.of_column(
            name, dtype, "Use .astype to make it a number of at most 64 bits, or text."
        )
    if not dtype.isnative:
        series = series.astype(dtype.newbyteorder("="))
    # NaT is null either way.
    return pa.array(series.to_numpy(), from_pandas=nan_is_null)


def _zoned(series: Any, dtype: Any, name: str) -> Any:
    zone = zone_of(dtype.tz)
    if zone is None:
        raise UnsupportedTypeError.of_column(name, dtype, "Use .dt.tz_convert('UTC').")
    instants = pa.array(series.to_numpy(dtype=f"datetime64[{dtype.unit}]"))
    return instants.view(pa.timestamp(dtype.unit, zone[1]))


def _texts(series: Any, name: str) -> Any:
    if series.dtype.storage == "pyarrow":
        array = series.array.__arrow_array__()
        return array.cast(pa.large_string())
    return infer_column(_missing_as_none(series.tolist(), nan_is_null=True), name)


def _categorical(series: Any, name: str) -> Any:
    """Codes and categories as a dictionary, ordered where the categories are."""
    pandas = sys.modules["pandas"]
    values = _column(pandas.Series(series.dtype.categories.array, copy=False), f"{name} (categories)", nan_is_null=True)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    codes = series.cat.codes.to_numpy()
    indices = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=bool(series.cat.ordered))


def _missing_as_none(values: list[Any], nan_is_null: bool) -> list[Any]:
    """NaN is pandas' mark for a missing value; it may stay NaN in a column of numbers alone, where it can be a value as well."""
    kinds = {known[0] for kind in set(map(type, values)) if (known := classify(kind)) is not None}
    if ValueKind.FLOAT not in kinds or (not nan_is_null and kinds <= {ValueKind.FLOAT, ValueKind.INT, ValueKind.NULL}):
        return values
    return [None if _is_nan(value) else value for value in values]


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)
