"""The data root: where the files of real datasets are looked for, and how a published table is read."""

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from thetafield.errors import DataError


class AbsentError(DataError):
    """A file of a real dataset is not under the data root."""


def named_root() -> Path | None:
    """Return the folder named by THETAFIELD_DATA, if one is."""
    named = os.environ.get("THETAFIELD_DATA")
    return Path(named).expanduser() if named else None


def data_root() -> Path:
    """Return the folder named by THETAFIELD_DATA, else thetafield/data in the user's cache."""
    named = named_root()
    if named is not None:
        return named
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "thetafield" / "data"


def read_table(path: Path, columns: Mapping[str, pa.DataType], times: str | None = None) -> pa.Table:
    """Read the named columns of a CSV file.

    Args:
        path: The file.
        columns: Type of each column to read; others are left out.
        times: How a time is written, such as %m/%d/%Y, where a column holds times.

    Raises:
        DataError: A column is missing, a value is not of its type, or there is no row.
    """
    convert = csv.ConvertOptions(
        column_types=dict(columns),
        include_columns=list(columns),
        strings_can_be_null=True,
        timestamp_parsers=None if times is None else [times],
    )
    try:
        table = csv.read_csv(path, convert_options=convert)
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, columns, " ".join(str(error).split())) from None
    if not table.num_rows:
        raise damaged(path, columns, "it has no rows")
    return table


def damaged(path: Path, columns: Mapping[str, pa.DataType], finding: str) -> DataError:
    """Return the error of a file that is not what was published, to be raised."""
    listed = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
    return DataError(
        f"{path} is damaged ({finding.rstrip('.')}): expected the published CSV with the columns {listed}, so get the "
        "file again."
    )
