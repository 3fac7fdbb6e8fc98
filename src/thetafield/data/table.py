"""Tables of any make, in memory or in a file, as Arrow tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet

from thetafield.data.csv_file import read_csv_file
from thetafield.errors import DataError, closest

SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")


def as_arrow(frame: Any) -> pa.Table:
    """Return any object that speaks the Arrow C stream, or a dict of columns, as a table."""
    if not isinstance(frame, dict) and not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            f"A table is expected (pandas, polars, Arrow, or a dict of columns), but got {type(frame).__name__}."
        )
    try:
        if isinstance(frame, dict):
            return pa.table({name: _array(values) for name, values in frame.items()})
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be read ({error}): every column needs a name of its own, one type and the same length."
        ) from error


def _array(values: Any) -> pa.Array:
    """Return a column of a dict; lists keep their gaps."""
    return pa.array(values if isinstance(values, list) else np.asarray(values))


def is_table(values: Any) -> bool:
    """Whether values come with named columns."""
    return isinstance(values, dict) or (hasattr(values, "__arrow_c_stream__") and hasattr(values, "columns"))


def is_table_file(name: str) -> bool:
    """Whether a name on the command line means a file with a table, and not a registered dataset."""
    return name.lower().endswith(SUFFIXES)


def read_table_file(path: Path) -> pa.Table:
    """Read a CSV, Parquet, Arrow or Feather file.

    Raises:
        DataError: The file is missing, of another kind, or damaged.
    """
    if not path.is_file():
        near = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"There is no file {path}; {closest(path.name, [n for n in near if is_table_file(n)])}")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path} is no table that can be read: give one of {', '.join(SUFFIXES)}.")
    try:
        if suffix == ".csv":
            return read_csv_file(path)
        if suffix == ".parquet":
            return parquet.read_table(path)
        return feather.read_table(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as {suffix[1:]} ({' '.join(str(error).split())}).") from None
