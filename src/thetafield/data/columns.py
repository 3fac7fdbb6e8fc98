"""Columns of a table as numbers: what is learned from the training rows, remembered, and applied to any rows."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from thetafield.data.arrays import shown
from thetafield.errors import DataError

MOST_CATEGORIES = 50
MOSTLY, MOST_STRAYS = 0.8, 3  # share of numbers in a column whose other texts are told, and how many of these
YEAR = 365.2425
DAY = 86400.0
SEASON, TREND = " season", " trend"  # what a date is as a cause of change


@dataclass(frozen=True)
class NumberColumn:
    """Numbers as they are; missing ones become the training median, and an indicator says so.

    Args:
        name: The column.
        median: Median of the training rows.
        indicator: Whether training rows lacked a value: then one more column is 1 where the value is missing.
    """

    kind: ClassVar[str] = "number"
    name: str
    median: float
    indicator: bool

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> "NumberColumn":
        """Learn the median of a column."""
        values = _numbers(name, column)
        missing = np.isnan(values)
        if missing.all():
            raise DataError(f"Column {name!r} has no value in any row: leave it out.")
        return cls(name, float(np.nanmedian(values)), bool(missing.any()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name, f"{self.name} missing") if self.indicator else (self.name,)

    @property
    def factors(self) -> tuple[str, ...]:
        """What stands behind each encoded column."""
        return (self.name,) * len(self.names)

    def encode(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the encoded columns, shape (M, c)."""
        values = _numbers(self.name, column)
        missing = np.isnan(values)
        filled = np.where(missing, self.median, values)
        return np.column_stack([filled, missing]) if self.indicator else filled[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """Text as one column of zeros and ones for each category of the training rows; others, and missing, are all zero.

    Args:
        name: The column.
        categories: The categories, the most frequent ones first, fifty at most.
        strays: Of a column that is numbers for the most part, the texts among them, three at most.
    """

    kind: ClassVar[str] = "category"
    name: str
    categories: tuple[str, ...]
    strays: tuple[str, ...] = ()

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> "CategoryColumn":
        """Learn the categories of a column."""
        labels, counts = np.unique([text for text in _text(column) if text is not None], return_counts=True)
        if not len(labels):
            raise DataError(f"Column {name!r} has no value in any row: leave it out.")
        order = np.lexsort([labels, -counts])
        labels, counts = [str(label) for label in labels[order]], counts[order]
        number = np.array([_is_number(label) for label in labels])
        strays = [label for label, told in zip(labels, number, strict=True) if not told][:MOST_STRAYS]
        mostly = counts[number].sum() >= MOSTLY * counts.sum()
        return cls(name, tuple(labels[:MOST_CATEGORIES]), tuple(strays) if mostly else ())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def factors(self) -> tuple[str, ...]:
        """What stands behind each encoded column."""
        return (self.name,) * len(self.names)

    def encode(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the encoded columns, shape (M, c)."""
        return (_text(column)[:, None] == np.array(self.categories, dtype=object)[None]).astype(np.float64)


@dataclass(frozen=True)
class DateColumn:
    """A date as the season, a cyclic pair over the year, and the trend, in years since the first training row.

    Args:
        name: The column.
        origin: The first date of the training rows, in days since 1970.
    """

    kind: ClassVar[str] = "date"
    name: str
    origin: float

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> "DateColumn":
        """Learn the first date of a column."""
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        texts = [text for text in column.to_pylist() if text is not None] if _is_text(kind) else []
        if texts and not any(text.strip()[:1].isdigit() for text in texts):  # nothing that was meant as a date
            raise DataError(f"It has {shown(texts[0])}: use it as a feature, or put numbers in its place.")
        return cls(name, float(np.min(_days(name, column))))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (f"{self.name} season sine", f"{self.name} season cosine", f"{self.name} years")

    @property
    def factors(self) -> tuple[str, ...]:
        """What stands behind each encoded column: the pair is one factor."""
        return (f"{self.name}{SEASON}", f"{self.name}{SEASON}", f"{self.name}{TREND}")

    def encode(self, column: pa.ChunkedArray) -> np.ndarray:
        """Return the encoded columns, shape (M, 3)."""
        days = _days(self.name, column)
        turn = 2 * math.pi * days / YEAR
        return np.column_stack([np.sin(turn), np.cos(turn), (days - self.origin) / YEAR])


Column = NumberColumn | CategoryColumn | DateColumn
COLUMNS: dict[str, type[Column]] = {kind.kind: kind for kind in (NumberColumn, CategoryColumn, DateColumn)}


def fit_column(name: str, column: pa.ChunkedArray) -> Column:
    """Choose by the column's type how it becomes numbers, and learn what that takes from its rows."""
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind):
        return NumberColumn.fit(name, column)
    if types.is_date(kind) or types.is_timestamp(kind):
        return DateColumn.fit(name, column)
    if _is_text(kind):
        return CategoryColumn.fit(name, column)
    raise DataError(
        f"Column {name!r} holds {kind}, which is neither number, text nor date: convert it or leave it out."
    )


def column_to_json(column: Column) -> dict[str, Any]:
    """Return what is remembered of a column as plain JSON values."""
    return {"kind": column.kind} | asdict(column)


def column_from_json(stored: dict[str, Any]) -> Column:
    """Return a column from what was remembered of it."""
    rest: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in stored.items() if key != "kind"
    }
    return COLUMNS[stored["kind"]](**rest)


def encode_columns(table: pa.Table, columns: Sequence[Column]) -> np.ndarray:
    """Return all encoded columns of a table side by side, shape (M, c)."""
    return np.column_stack([column.encode(table[column.name]) for column in columns])


def _numbers(name: str, column: pa.ChunkedArray) -> np.ndarray:
    """Return a column as floats with NaN where it is missing; infinite numbers are refused."""
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_string(column.type) or types.is_large_string(column.type):
        raise _no_number(name, column)
    try:
        # Not safe in Arrow's sense: whole numbers above 2⁵³ may be rounded.
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(
            f"Column {name!r} holds {column.type}, not numbers ({error}): encode or leave it out."
        ) from None
    if np.isinf(values).any():
        raise DataError(
            f"Column {name!r} is infinite in row {int(np.isinf(values).argmax())}: drop or correct such rows."
        )
    return values


def _no_number(name: str, column: pa.ChunkedArray) -> DataError:
    value = next(v for v in column.to_pylist() if v is not None)
    return DataError(f"Column {name!r} held numbers in the training rows, but has {shown(value)}: give numbers.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_text(kind: pa.DataType) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _text(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column as Python text, None where it is missing."""
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.array(pc.cast(column, pa.string()).to_pylist(), dtype=object)


def _days(name: str, column: pa.ChunkedArray) -> np.ndarray:
    """Return dates as days since 1970."""
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = _parse_dates(name, column)
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise DataError(
            f"Date {name!r} is missing in row {row} ({column.null_count} such rows): fill it in or drop them."
        )
    if not (types.is_date(column.type) or types.is_timestamp(column.type)):
        raise DataError(f"Column {name!r} held dates in the training rows, but holds {column.type}: give dates.")
    return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_numpy() / (1000 * DAY)


def _parse_dates(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text as dates, written year-month-day with or without a time."""
    try:
        return column.cast(pa.timestamp("ms"))
    except pa.ArrowException:
        for row, value in enumerate(column.to_pylist()):
            try:
                pa.array([value]).cast(pa.timestamp("ms"))
            except pa.ArrowException:
                raise DataError(
                    f"Date {name!r} has {shown(value)} in row {row}, which is no date: write 2024-05-31 or "
                    "2024-05-31 13:00."
                ) from None
        raise
