"""What the page asks for as inputs: one control for each column of a table, and where it starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.data.columns import YEAR, CategoryColumn, Column, DateColumn, NumberColumn
from thetafield.data.encoder import check_columns
from thetafield.data.table import read_table_file
from thetafield.errors import DataError
from thetafield.evenly import evenly
from thetafield.explorer.arrays import Arrays, as_double
from thetafield.fields.model import FieldModel, Model

MOST_COLUMNS = 256  # beyond this inputs are no columns that a person sets
SPREAD = 2.5  # standard deviations that a control reaches from the mean
MOST_ROWS = 500


@dataclass(frozen=True)
class Ranges:
    """Where each encoded input starts and how far its control reaches, and what that was read from.

    Args:
        start: A typical row, shape (c,).
        low: Lower ends.
        high: Upper ends.
        source: The sentence that the page says.
    """

    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    source: str


def is_table(model: Model) -> bool:
    """Whether inputs are columns, few enough to be set one by one, that go straight into the head or into trees."""
    shape = model.recipe.input_shape
    shared = isinstance(model, FieldModel) and any(True for _ in model.predictor.backbone.parameters())
    return len(shape) == 1 and shape[0] <= MOST_COLUMNS and not shared


def read_rows(model: Model, path: Path) -> np.ndarray:
    """Return the rows of a table as the model's inputs, shape (n, c).

    Raises:
        DataError: The file or a column is missing, or the model does not read tables.
    """
    if not is_table(model):
        raise DataError("--rows is for models of tables: this one reads images or series.")
    table = read_table_file(path)
    if model.encoder is not None:
        rows = model.encoder.inputs(table)
    else:
        names = list(model.recipe.features or ())
        if not names:
            raise DataError("This model does not know the names of its columns, so that no table can be matched to it.")
        check_columns(table, names)
        rows = np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)
    rows = rows[np.isfinite(rows).all(1)]
    if not len(rows):
        raise DataError(f"{path} has no row without gaps.")
    return rows[evenly(len(rows), MOST_ROWS)]


def find_ranges(model: Model, rows: np.ndarray | None, said: str) -> Ranges:
    """Return typical inputs: of rows, of what training remembered, or of the model's own scale.

    Args:
        model: The model.
        rows: Rows to look at, if there are any, shape (n, c).
        said: What those rows are.
    """
    if rows is not None:
        low, high = np.quantile(rows, 0.01, axis=0), np.quantile(rows, 0.99, axis=0)
        start, words = np.median(rows, 0), "the median"
        if _encoded(model):
            start, words = _typical_row(model, rows), "the medians and most frequent categories"
        return _wide(Ranges(start, low, high, f"Start and ranges are {words} and 98 % of {said}."))
    if model.inputs is not None:
        mean, scale = as_double(model.inputs.shift).ravel(), as_double(model.inputs.scale).ravel()
        source = "the means of the training rows"
        start = mean
        if _encoded(model):
            start, source = _medians(model, mean), "the medians of the training rows"
        reach = SPREAD * scale
        source = (
            f"Inputs start at {source} and reach ±{SPREAD} deviations: their own ends are not known without --rows."
        )
        return Ranges(start, mean - reach, mean + reach, source)
    count = model.recipe.input_shape[0]
    zero, three = np.zeros(count), np.full(count, 3.0)
    source = "The saved model holds no rows and no scale of its inputs, so that they start at 0 and reach ±3: --rows "
    return Ranges(zero, -three, three, source + "or --samples let the page look at data.")


def describe_inputs(model: Model, ranges: Ranges, rows: np.ndarray | None, arrays: Arrays) -> dict[str, Any]:
    """Return the controls, in the order of the table's columns."""
    names = _names(model)
    columns: list[dict[str, Any]] = []
    encoded = _encoded(model)
    if not encoded:
        columns = [{"kind": "number", "name": name, "at": k, "missing": None} for k, name in enumerate(names)]
    else:
        for column, at, _ in encoded:
            control: dict[str, Any] = {"kind": column.kind, "name": column.name, "at": at}
            if isinstance(column, NumberColumn):
                control["missing"] = at + 1 if column.indicator else None
                control["median"] = column.median
            elif isinstance(column, CategoryColumn):
                control["categories"] = list(column.categories)
            elif isinstance(column, DateColumn):
                control["origin"] = column.origin
            columns.append(control)
    return {
        "columns": columns,
        "names": list(names),
        "start": ranges.start.tolist(),
        "low": ranges.low.tolist(),
        "high": ranges.high.tolist(),
        "source": ranges.source,
        "rows": None if rows is None else arrays.add(rows),
    }


def _names(model: Model) -> tuple[str, ...]:
    return model.recipe.features or tuple(f"x{k}" for k in range(model.recipe.input_shape[0]))


def _encoded(model: Model) -> list[tuple[Column, int, int]]:
    """Return the table's columns, each with the place where its encoded ones begin and end; empty if there are none."""
    columns = () if model.encoder is None else model.encoder.features
    ends = np.cumsum([len(column.names) for column in columns]).tolist()
    if not ends or ends[-1] != model.recipe.input_shape[0]:
        return []
    return list(zip(columns, [0, *ends[:-1]], ends, strict=True))


def _typical_row(model: Model, rows: np.ndarray) -> np.ndarray:
    """Return medians of the numbers that are there, the most frequent category, and the date in the middle."""
    start = np.median(rows, 0)
    for column, at, end in _encoded(model):
        part = rows[:, at:end]
        if isinstance(column, CategoryColumn):
            counts = part.sum(0)
            start[at:end] = (np.arange(end - at) == counts.argmax()) & (counts.max() > 0)
        elif isinstance(column, DateColumn):
            # A season and a trend of one and the same day.
            start[at:end] = part[np.argsort(part[:, 2], kind="stable")[len(part) // 2]]
        elif column.indicator:
            there = part[:, 1] < 0.5
            start[at:end] = np.median(part[there, 0]) if there.any() else column.median, float(not there.any())
    return start


def _medians(model: Model, mean: np.ndarray) -> np.ndarray:
    """Return medians of numbers, the most frequent category, and the mean of dates."""
    start = mean.copy()
    for column, at, end in _encoded(model):
        if isinstance(column, NumberColumn):
            start[at:end] = [column.median, 0.0][: end - at]
        elif isinstance(column, CategoryColumn):
            start[at:end] = np.arange(end - at) == 0
        else:
            turn = 2 * np.pi * (column.origin / YEAR + mean[at + 2])
            start[at : at + 2] = np.sin(turn), np.cos(turn)
    return start


def _wide(ranges: Ranges) -> Ranges:
    """Return ranges that are nowhere empty."""
    flat = ranges.high <= ranges.low
    return Ranges(
        ranges.start,
        np.where(flat, ranges.low - 1, ranges.low),
        np.where(flat, ranges.high + 1, ranges.high),
        ranges.source,
    )
