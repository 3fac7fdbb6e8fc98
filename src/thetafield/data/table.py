"""A table of any make, split into inputs, target, domain and descriptors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from thetafield.errors import DataError, closest


@dataclass(frozen=True)
class TableParts:
    """The columns of a table by the part they play."""

    x: np.ndarray
    y: np.ndarray
    domain: np.ndarray | None
    z: np.ndarray | None
    features: tuple[str, ...]


def split_frame(
    frame: Any,
    target: str,
    domain: str | None,
    descriptors: Sequence[str],
    features: Sequence[str] | None,
) -> TableParts:
    """Return the parts of `frame`; any object that speaks the Arrow C stream, or a dict of columns, is a table."""
    for argument, columns in (("descriptors", descriptors), ("features", features)):
        if isinstance(columns, str):
            raise DataError(f"{argument} is a list of columns, but got one name: write {argument}=[{columns!r}].")
    table = _as_arrow(frame)
    roles = [target, *([domain] if domain is not None else []), *descriptors]
    # The index of a pandas frame may travel as a column: it can be named, but it is not a feature by itself.
    hidden = [*roles, *(table.schema.pandas_metadata or {}).get("index_columns", [])]
    rest = tuple(c for c in table.column_names if c not in hidden) if features is None else tuple(features)
    for column in (*roles, *rest):
        if column not in table.column_names:
            raise DataError(f"The table has no column {column!r}; {closest(column, table.column_names)}")
        if table.column_names.count(column) > 1:
            raise DataError(f"The table has {table.column_names.count(column)} columns {column!r}: rename one of them.")
    if target in rest or target in descriptors:
        raise DataError(f"Column {target!r} is the target and cannot also be a feature or a descriptor: leave it out.")
    if not rest:
        raise DataError("No feature columns are left: name them with features=[…].")
    if domain is None and not descriptors:
        raise DataError("Name the column that says which domain a row belongs to (domain=…), or descriptors=[…].")
    return TableParts(
        x=np.column_stack([_numeric(table, column) for column in rest]),
        y=_complete(table, target),
        domain=None if domain is None else _complete(table, domain),
        z=np.column_stack([_numeric(table, column) for column in descriptors]) if descriptors else None,
        features=rest,
    )


def _as_arrow(frame: Any) -> pa.Table:
    if not isinstance(frame, dict) and not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            f"A table is expected (pandas, polars, Arrow, or a dict of columns), but got {type(frame).__name__}."
        )
    try:
        if isinstance(frame, dict):
            return pa.table({name: pa.array(np.asarray(values)) for name, values in frame.items()})
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be read ({error}): every column needs a name of its own, one type and the same length."
        ) from error


def _numeric(table: pa.Table, column: str) -> np.ndarray:
    """Return a column of finite numbers."""
    kind = table.schema.field(column).type
    if not any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)):
        raise DataError(f"Column {column!r} holds {kind}, not numbers: encode it first, or leave it out.")
    # Not safe in Arrow's sense: whole numbers above 2⁵³ may be rounded.
    values = table[column].cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError(f"Column {column!r} is missing or infinite in row {row}: drop or impute such rows first.")
    return values


def _complete(table: pa.Table, column: str) -> np.ndarray:
    """Return a column of labels or numbers without missing entries."""
    values = table[column]
    if values.null_count:  # asked of Arrow, since numpy would get the last category of a dictionary in their place
        row = values.is_null().index(True).as_py()
        raise DataError(
            f"Column {column!r} is missing in row {row} ({values.null_count} such rows): fill it in or drop those rows."
        )
    return (values.cast(pa.float64()) if types.is_decimal(values.type) else values).to_numpy()
