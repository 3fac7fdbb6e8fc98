"""A table of any make, split into inputs, target, domain and descriptors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

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
    frame: Any,  # noqa: ANN401
    target: str,
    domain: str | None,
    descriptors: Sequence[str],
    features: Sequence[str] | None,
) -> TableParts:
    """Return the parts of `frame`; any object that speaks the Arrow C stream, or a dict of columns, is a table."""
    table = _as_arrow(frame)
    roles = [target, *([domain] if domain is not None else []), *descriptors]
    rest = tuple(c for c in table.column_names if c not in roles) if features is None else tuple(features)
    for column in (*roles, *rest):
        if column not in table.column_names:
            raise DataError(f"The table has no column {column!r}; {closest(column, table.column_names)}")
    if target in rest or target in descriptors:
        raise DataError(f"Column {target!r} is the target and cannot also be a feature or a descriptor.")
    if not rest:
        raise DataError("No feature columns are left: name them with features=[…].")
    if domain is None and not descriptors:
        raise DataError("Name the column that says which domain a row belongs to (domain=…), or descriptors=[…].")
    return TableParts(
        x=np.column_stack([_numeric(table, column) for column in rest]),
        y=table[target].to_numpy(),
        domain=None if domain is None else table[domain].to_numpy(),
        z=np.column_stack([_numeric(table, column) for column in descriptors]) if descriptors else None,
        features=rest,
    )


def _as_arrow(frame: Any) -> pa.Table:  # noqa: ANN401
    if isinstance(frame, dict):
        return pa.table({name: pa.array(np.asarray(values)) for name, values in frame.items()})
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise DataError(
        f"A table is expected (pandas, polars, Arrow, or a dict of columns), but got {type(frame).__name__}."
    )


def _numeric(table: pa.Table, column: str) -> np.ndarray:
    kind = table.schema.field(column).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(f"Column {column!r} holds {kind}, not numbers: encode it first or leave it out of features=[…].")
    values = table[column].cast(pa.float64()).to_numpy()
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError(f"Column {column!r} is missing or infinite in row {row}: drop or impute such rows first.")
    return values
