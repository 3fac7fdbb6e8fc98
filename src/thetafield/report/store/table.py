"""A table before it is written: cells with their means, marks, reasons and what the paper prints."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

from thetafield.report.store.grid import Line
from thetafield.report.store.paper import Printed

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Cell:
    """One place of a table.

    Args:
        value: The mean; None where there is none.
        spread: The standard deviation over repetitions; None for one alone.
        count: Number of repetitions.
        whole: Whether it has every repetition that another cell of its column has.
        word: What stands there instead of a number, such as N/A.
        decimals: Digits behind the point.
        notes: The notes that explain it, as positions in the table's notes.
        printed: What the paper prints there.
        mark: "best", "second" or nothing.
    """

    value: float | None = None
    spread: float | None = None
    count: int = 0
    whole: bool = True
    word: str = ""
    decimals: int = 2
    notes: tuple[int, ...] = ()
    printed: Printed | None = None
    mark: str = ""

    @classmethod
    def of(cls, values: Sequence[float], decimals: int = 2) -> "Cell":
        """Summarise the values of several repetitions.

        >>> Cell.of([1.0, 2.0, 3.0]).text
        '2.00 ± 1.00'
        """
        spread = stdev(values) if len(values) > 1 else None
        return cls(value=mean(values), spread=spread, count=len(values), decimals=decimals)

    @property
    def text(self) -> str:
        """Mean ± standard deviation, or the word."""
        if self.word or self.value is None:
            return self.word or "–"
        spread = "" if self.spread is None else f" ± {self.spread:.{self.decimals}f}"
        return f"{self.value:.{self.decimals}f}{spread}".replace("-", "−")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        title: Its head.
        unit: What is measured, such as "error, %".
        better: "low", "high", or nothing where no cell is better than another.
        paper: Whether the paper has values to stand beside it.
    """

    title: str
    unit: str = ""
    better: str = "low"
    paper: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Args:
        title: Its head.
        cells: One for each column.
        group: The part of the table it stands in.
        ours: Whether it is the method that the report is about.
        method: Registry name of the method, where it is one.
    """

    title: str
    cells: tuple[Cell, ...]
    group: str = ""
    ours: bool = False
    method: str = ""


@dataclass(frozen=True)
class Table:
    """A whole table.

    Args:
        name: Its file.
        title: Its caption.
        head: What the rows are.
        columns: The columns.
        rows: The rows, part by part.
        notes: What the marks on cells refer to.
        about: What a reader has to know to read it.
        command: What made it.
    """

    name: str
    title: str
    head: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    about: str = ""
    command: str = ""

    def settled(self) -> "Table":
        """Return the table with its notes in the order in which a reader meets them, less those that nobody meets."""
        met = dict.fromkeys(note for row in self.rows for cell in row.cells for note in cell.notes)
        places = {note: i for i, note in enumerate(met)}
        rows = tuple(
            replace(row, cells=tuple(replace(c, notes=tuple(sorted(places[n] for n in c.notes))) for c in row.cells))
            for row in self.rows
        )
        return replace(self, rows=rows, notes=tuple(self.notes[note] for note in met))

    @property
    def empty(self) -> bool:
        """Whether no cell has a number."""
        return not any(cell.value is not None for row in self.rows for cell in row.cells)


class Notes:
    """The notes of a table, each told once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Return the position of a note."""
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> tuple[str, ...]:
        """All notes in order."""
        return tuple(self._places)


def letter(position: int) -> str:
    """Return the mark of a note.

    >>> letter(0), letter(25), letter(26)
    ('a', 'z', 'aa')
    """
    turns, rest = divmod(position, len(LETTERS))
    return (letter(turns - 1) if turns else "") + LETTERS[rest]


def marked(rows: Iterable[Row], columns: Sequence[Column], by_part: bool = False) -> tuple[Row, ...]:
    """Mark the best and the second-best mean of every column; equal means share a mark.

    A mean that lacks seeds and splits that others have is one of other data, and gets no mark until it is whole. A
    column in which fewer than two rows have a number has no best.

    Args:
        rows: The rows.
        columns: Say what is better.
        by_part: Whether each part of the table has marks of its own, since its numbers are not those of the others.
    """
    rows = tuple(rows)
    if by_part:
        return tuple(row for part in part_of(rows).values() for row in marked(part, columns))
    marks: dict[tuple[int, int], str] = {}
    for position, column in enumerate(columns):
        cells = {i: row.cells[position] for i, row in enumerate(rows)}
        values = {i: cell.value for i, cell in cells.items() if cell.whole and cell.value is not None}
        if column.better not in ("low", "high") or len(values) < 2:
            continue
        ordered = sorted(set(values.values()), reverse=column.better == "high")
        names = dict(zip(ordered, ("best", "second"), strict=False))
        marks |= {(i, position): names[value] for i, value in values.items() if value in names}
    return tuple(
        replace(row, cells=tuple(replace(cell, mark=marks.get((i, j), "")) for j, cell in enumerate(row.cells)))
        for i, row in enumerate(rows)
    )


def sized(cell: Cell, means: Sequence[float], metric: str) -> Cell:
    """Give a cell the digits that it needs.

    What is in % has two behind the point, seconds as many as they deserve, and other units, all over a column, three
    that count in its smallest mean.

    >>> [sized(Cell.of([v]), [0.66, 12.0], m).text for v, m in ((34.5, "error"), (12.0, "mae"), (711.2, "seconds"))]
    ['34.50', '12.000', '711']
    """
    value = cell.value or 1.0
    if metric == "seconds":
        digits = 0 if value >= 100 else 1 if value >= 1 else 1 - math.floor(math.log10(value))
    else:
        digits = max(2, decimals(metric, means, 3))
    return replace(cell, decimals=digits)


def decimals(metric: str, values: Sequence[float], figures: int) -> int:
    """Return how many digits stand behind the point so that the smallest of some values has so many that count.

    >>> [decimals("mae", values, 3) for values in ([0.0123, 5.0], [2.5e-7], [711.0])], decimals("error", [3.0], 5)
    ([4, 9, 0], 2)
    """
    if metric in ("error", "percent"):
        return 2
    smallest = min((abs(value) for value in values if value), default=1.0)
    return max(0, figures - 1 - math.floor(math.log10(smallest)))


def unit(metric: str) -> str:
    """Return how a metric is called in tables and on axes."""
    return {"error": "error, %", "mae": "mean absolute error"}.get(metric, metric)


def part_of(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    """Return the rows by group, in their order."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.group, []).append(row)
    return parts


def apart(named: Sequence[Row | Line]) -> list[str]:
    """Return what rows are called outside of their table: by part or method too, where several go by one title.

    >>> apart([Row("ERM", (), "Small"), Row("ERM", (), "Large"), Row("NDA", (), "Large")])
    ['ERM, small', 'ERM, large', 'NDA']
    >>> apart([Row("Mine", (), method="erm"), Row("Mine", (), method="nda")])
    ['Mine, erm', 'Mine, nda']
    """
    titles = [one.title for one in named]
    for more in ([f"{one.group[:1].lower()}{one.group[1:]}" for one in named], [one.method for one in named]):
        count = Counter(titles)
        titles = [f"{t}, {word}" if count[t] > 1 and word else t for t, word in zip(titles, more, strict=True)]
    return titles
