"""A table's columns by the part they play, and how each becomes numbers: learned once, remembered with the field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from thetafield.data.arrays import shown
from thetafield.data.columns import (
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    column_from_json,
    column_to_json,
    encode_columns,
    fit_column,
)
from thetafield.data.table import as_arrow, is_table
from thetafield.errors import DataError, closest


@dataclass(frozen=True)
class TableEncoder:
    """How rows of a table become inputs and descriptors, fitted on the training rows.

    Args:
        target: Column to predict.
        domain: Column that says which domain a row belongs to, if there is one.
        features: The input columns.
        descriptors: The columns that describe a domain.
    """

    target: str
    domain: str | None
    features: tuple[Column, ...]
    descriptors: tuple[Column, ...]

    @classmethod
    def fit(
        cls,
        table: pa.Table,
        target: str,
        domain: str | None,
        descriptors: Sequence[str],
        features: Sequence[str] | None,
    ) -> "TableEncoder":
        """Learn from the rows of a table; `features` are all other columns where they are not named."""
        roles = [target, *([domain] if domain is not None else []), *descriptors]
        # The index of a pandas frame may travel as a column: it can be named, but it is not a feature by itself.
        hidden = [*roles, *(table.schema.pandas_metadata or {}).get("index_columns", [])]
        rest = [c for c in table.column_names if c not in hidden] if features is None else list(features)
        check_columns(table, [*roles, *rest])
        if target == domain:
            raise DataError(f"Column {target!r} is the target and cannot name the domains too: name another column.")
        if target in rest or target in descriptors:
            raise DataError(
                f"Column {target!r} is the target and cannot be a feature or a descriptor too: leave it out."
            )
        if not rest:
            raise DataError("No feature columns are left: name them with features=[…].")
        if domain is None and not descriptors:
            raise DataError("Name the column that says which domain a row belongs to (domain=…), or descriptors=[…].")
        return cls(
            target=target,
            domain=domain,
            features=tuple(fit_column(name, table[name]) for name in rest),
            descriptors=tuple(_descriptor(name, table[name]) for name in descriptors),
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded inputs."""
        return tuple(name for column in self.features for name in column.names)

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """Names of the encoded descriptor coordinates."""
        return tuple(name for column in self.descriptors for name in column.names)

    @property
    def factors(self) -> tuple[str, ...]:
        """The factor behind each descriptor coordinate."""
        return tuple(factor for column in self.descriptors for factor in column.factors)

    def inputs(self, table: pa.Table) -> np.ndarray:
        """Return the encoded inputs of a table's rows, shape (M, c)."""
        check_columns(table, [column.name for column in self.features])
        return encode_columns(table, self.features)

    def descriptor_rows(self, table: pa.Table) -> np.ndarray:
        """Return the encoded descriptors of a table's rows, shape (M, d)."""
        check_columns(table, [column.name for column in self.descriptors])
        for column in self.descriptors:
            check_complete(table, column.name)
        return encode_columns(table, self.descriptors)

    def raw_descriptors(self, z: Any) -> Any:
        """Return raw columns of a table, or one row of them as a dict, as numbers; an array of numbers as it is."""
        if isinstance(z, Mapping):
            z = {name: value if np.ndim(value) else [value] for name, value in z.items()}
        if is_table(z):
            return self.descriptor_rows(as_arrow(z))
        if not all(isinstance(column, NumberColumn) for column in self.descriptors):
            columns = ", ".join(column.name for column in self.descriptors)
            raise DataError(f"Some descriptors are dates: give z as a table or a dict with the columns {columns}.")
        return z

    def to_json(self) -> dict[str, Any]:
        """Return all that is remembered as plain JSON values."""
        return {
            "target": self.target,
            "domain": self.domain,
            "features": [column_to_json(column) for column in self.features],
            "descriptors": [column_to_json(column) for column in self.descriptors],
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "TableEncoder":
        """Return the encoder from what was remembered."""
        parts = {key: tuple(map(column_from_json, stored[key])) for key in ("features", "descriptors")}
        return cls(target=stored["target"], domain=stored["domain"], **parts)


def _descriptor(name: str, column: pa.ChunkedArray) -> Column:
    """Return how a descriptor becomes numbers: a number as it is, a date as season and trend."""
    fitted = fit_column(name, column)
    if not isinstance(fitted, CategoryColumn):
        return fitted
    if fitted.strays:
        strays = ", ".join(map(repr, fitted.strays))
        raise DataError(f"Descriptor {name!r} has numbers, but also {strays}: correct these rows or drop them.")
    try:
        return DateColumn.fit(name, column)
    except DataError as error:
        raise DataError(f"Descriptor {name!r} is text: a descriptor is a number or a date. {error}") from None


def read_frame(
    frame: Any,
    target: str | None,
    domain: str | None,
    descriptors: Sequence[str],
    features: Sequence[str] | None,
    places: Any,
    known: TableEncoder | None,
) -> tuple[TableEncoder, pa.Table]:
    """Return the encoder of a frame, fitted or known already, and the frame with all the columns that it reads."""
    for argument, columns in (("descriptors", descriptors), ("features", features)):
        if isinstance(columns, str):
            raise DataError(f"{argument} is a list of columns, but got one name: write {argument}=[{columns!r}].")
    table = as_arrow(frame)
    if known is not None:
        domain, descriptors = known.domain, [column.name for column in known.descriptors]
    elif target is None:
        raise DataError("Name the column to predict: target=….")
    if places is not None:
        table = _with_places(table, as_arrow(places), domain, descriptors)
    if known is not None:
        return known, table
    assert target is not None
    return TableEncoder.fit(table, target, domain, descriptors, features), table


def _with_places(table: pa.Table, places: pa.Table, domain: str | None, descriptors: Sequence[str]) -> pa.Table:
    """Return the rows with the descriptors of their domain, from a table with one row per domain."""
    if domain is None:
        raise DataError("A table of places needs the column that names the domain in both tables: domain=….")
    check_columns(table, [domain])
    check_columns(places, [domain, *descriptors])
    both = [name for name in descriptors if name in table.column_names]
    if both:
        raise DataError(f"Column {both[0]!r} is in the table and in the table of places: keep it in one of them.")
    keys, wanted = complete_column(places, domain), complete_column(table, domain)
    order = np.argsort(keys, kind="stable")
    if len(keys) > 1 and (keys[order][1:] == keys[order][:-1]).any():
        twice = keys[order][1:][keys[order][1:] == keys[order][:-1]][0]
        raise DataError(f"The table of places has two rows for domain {shown(twice)}: keep one.")
    at = np.clip(np.searchsorted(keys[order], wanted), 0, len(keys) - 1)
    unknown = keys[order][at] != wanted
    if unknown.any():
        raise DataError(
            f"Domain {shown(wanted[unknown.argmax()])} has rows but no line in the table of places: add it."
        )
    rows = pa.array(order[at])
    for name in descriptors:
        table = table.append_column(name, places[name].take(rows))
    return table


def check_columns(table: pa.Table, names: Sequence[str]) -> None:
    """Raise where a column is missing or there are two of its name."""
    for name in names:
        if name not in table.column_names:
            raise DataError(f"The table has no column {name!r}; {closest(name, table.column_names)}")
        if table.column_names.count(name) > 1:
            raise DataError(f"The table has {table.column_names.count(name)} columns {name!r}: rename one of them.")


def check_complete(table: pa.Table, name: str) -> None:
    """Raise where a column that must not have gaps has some; NaN is a gap too."""
    column = table[name]
    missing = column.is_null(nan_is_null=True) if types.is_floating(column.type) else column.is_null()
    count = missing.to_numpy().sum()
    if count:
        row = missing.index(True).as_py()
        raise DataError(f"Column {name!r} is missing in row {row} ({count} such rows): fill it in or drop those rows.")


def complete_column(table: pa.Table, name: str) -> np.ndarray:
    """Return labels or numbers without gaps."""
    check_complete(table, name)
    values = table[name]
    return (values.cast(pa.float64()) if types.is_decimal(values.type) else values).to_numpy()
