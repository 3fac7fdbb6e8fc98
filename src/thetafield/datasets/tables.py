"""Reading Parquet tables and numpy archives, with one clear sentence where a file is not what was published."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from thetafield.errors import DataError


def read_parquet(path: Path, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Read the named columns of a Parquet file, in the order of `columns`.

    Args:
        path: The file.
        columns: Type of each column to read, to which its values are converted; others are left out.

    Raises:
        DataError: The file is no Parquet table, a column is missing, a value is not of its type, or there is no row.
    """
    listed = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
    expected = f"the published Parquet table with the columns {listed}"
    try:
        found = parquet.read_schema(path).names
        held = [name for name in columns if name in found]
        table = parquet.read_table(path, columns=held).select(held)
        table = table.cast(pa.schema([(name, columns[name]) for name in held]))
    except (pa.ArrowException, OSError) as error:
        raise damaged_file(path, str(error), expected) from None
    missing = [name for name in columns if name not in found]
    if missing:
        raise damaged_file(path, f"there is no column {missing[0]}", expected)
    if not table.num_rows:
        raise damaged_file(path, "it has no rows", expected)
    return table


def read_npz(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read the named arrays of a numpy archive; pickled objects are refused.

    Args:
        path: The file.
        names: The arrays to read; others are left out.

    Raises:
        DataError: The file is no numpy archive, or an array is missing, cut short or pickled.
    """
    expected = f"the published numpy archive with the arrays {', '.join(names)}"
    try:
        with zipfile.ZipFile(path) as archive:
            held = {name.removesuffix(".npy") for name in archive.namelist()}
        missing = [name for name in names if name not in held]
        if not missing:
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in names}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise damaged_file(path, str(error), expected) from None
    raise damaged_file(path, f"there is no array {missing[0]}", expected)


def damaged_file(path: Path, finding: str, expected: str) -> DataError:
    """Return the error of a file that is not what was published, to be raised."""
    finding = " ".join(finding.split()).rstrip(".")
    return DataError(f"{path} is damaged ({finding}): expected {expected}, so get the file again.")
