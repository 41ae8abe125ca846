"""Columns of other libraries: frames and arrays of pandas, polars, Arrow and numpy as values of Python.

None of these libraries is imported here, except pyarrow to read an object that speaks Arrow and nothing else.

| given | read |
|---|---|
| mapping, pandas and polars frame, Arrow table and batch | its columns by name |
| Arrow array, pandas and polars series, numpy array | a list; missing values are ``None`` |
| column of lists of one length | the rows of a matrix |
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .errors import InputError

__all__ = ["columns_of", "rows_of", "values_of"]


def columns_of(table: Any) -> dict[str, Any] | None:
    """The columns of a frame or table by name; ``None`` if it is a single column."""
    if isinstance(table, Mapping):
        return dict(table)
    if isinstance(table, (list, tuple, str, bytes)):
        return None
    if hasattr(table, "schema") and hasattr(table, "column") and hasattr(table, "num_rows"):
        return _named(list(table.schema.names), table.column)
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        names = list(table.columns)
        return _named(names, table.__getitem__)
    # Arrays speak this interface, too, and have a length and an item at 0.
    if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "__getitem__"):
        try:
            pyarrow = import_module("pyarrow")
        except ImportError:
            hint = "install pyarrow, or give a pandas or polars frame"
            raise InputError(f"reading {type(table).__name__} needs pyarrow; {hint}", hint=hint) from None
        return columns_of(pyarrow.table(table))
    return None


def _named(names: list[Any], column: Any) -> dict[str, Any]:
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the frame has several columns {twice!r}; rename or drop one")
    return {name: column(name) for name in names}


def values_of(column: Any) -> Any:
    """A column as a list of Python values; anything that is no column of another library as it is."""
    if column is None or isinstance(column, (str, bytes, list, tuple)):
        return column
    if hasattr(column, "to_pylist"):
        return _in_micros(column).to_pylist()
    if hasattr(column, "isna") and hasattr(column, "to_list"):
        return [None if missing else value for value, missing in zip(column.to_list(), column.isna())]
    if hasattr(column, "to_list"):
        return column.to_list()
    dtype = getattr(column, "dtype", None)
    # Times stay numpy's: as integers they would lose their unit.
    return column.tolist() if hasattr(column, "tolist") and getattr(dtype, "kind", "M") not in "mM" else column


def _in_micros(column: Any) -> Any:
    """An Arrow column of times in microseconds: those in nanoseconds have no ``datetime``."""
    if not str(column.type).startswith("timestamp[ns"):
        return column
    pyarrow = import_module("pyarrow")
    return column.cast(pyarrow.timestamp("us", tz=column.type.tz), safe=False)


def rows_of(column: Any) -> Any:
    """A column of vectors as a matrix, where that is quicker than a list of lists."""
    if column is None or isinstance(column, (list, tuple)):
        return column
    if hasattr(column, "to_pylist"):
        return _arrow_rows(column)
    if hasattr(column, "isna") and hasattr(column, "to_list") and not hasattr(column, "columns"):
        return values_of(column)
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _arrow_rows(column: Any) -> Any:
    """Rows of a list column without missing ones, by one array; otherwise as lists."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    kind = str(array.type)
    if array.null_count or not len(array) or not kind.startswith(("fixed_size_list", "list", "large_list")):
        return array.to_pylist()
    flat = array.flatten()
    if flat.null_count or len(flat) % len(array) or not _is_regular(array, len(flat) // len(array)):
        return array.to_pylist()
    return flat.to_numpy(zero_copy_only=False).reshape(len(array), -1)


def _is_regular(array: Any, width: int) -> bool:
    """Whether all lists have this length."""
    if hasattr(array.type, "list_size"):
        return bool(array.type.list_size == width)
    lengths = array.value_lengths().unique()
    return len(lengths) == 1 and bool(lengths[0].as_py() == width)
