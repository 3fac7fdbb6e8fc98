"""Tables of methods by datasets: mean ± standard deviation, the paper's value beside it, and why a cell is empty."""

from dataclasses import dataclass, replace

from thetafield.report.store.cells import beside, column_cells, has_ours
from thetafield.report.store.grid import Grid, Line, grid
from thetafield.report.store.items import Gap
from thetafield.report.store.paper import printed_score
from thetafield.report.store.reading import Results
from thetafield.report.store.table import Column, Notes, Row, Table, marked, unit


@dataclass(frozen=True)
class Measure:
    """What is read off a trial.

    Args:
        key: Where it stands in the result.
        words: What it is.
        suffix: What the file of its table is called by, behind the suite.
    """

    key: str
    words: str
    suffix: str = ""


MICRO = Measure("score", "Over all samples of all unseen domains")
MACRO = Measure("macro", "Mean over the unseen domains", "-macro")
WORST = Measure("worst_decile", "Mean over the worst tenth of the unseen domains", "-worst")


def comparison(results: Results, measure: Measure, title: str) -> Table:
    """Return the table of a suite: methods by datasets.

    Args:
        results: What the suite left.
        measure: What is compared.
        title: The caption.
    """
    layout, notes = _merged(grid(results)), Notes()
    columns, cells = [], {}
    for name in layout.columns:
        placed = {line: layout.at(line, name) for line in layout.lines}
        metric = next((trial.result["metric"] for place in placed.values() for trial in place.trials), "")
        column = column_cells(placed, notes, lambda trial: trial.result[measure.key], metric)
        if measure is MICRO:
            column = beside(column, {line: layout.at(line, name).item for line in layout.lines}, printed_score)
        cells |= {(line, name): cell for line, cell in column.items()}
        columns.append(Column(name, unit(metric), paper=any(cell.printed for cell in column.values())))
    rows = [
        Row(
            title=line.title,
            cells=tuple(cells[line, name] for name in layout.columns),
            group=line.group,
            ours=has_ours(layout.items(line)),
            method=line.method,
        )
        for line in layout.lines
    ]
    return Table(
        name=results.suite + measure.suffix,
        title=title,
        head="Method",
        columns=tuple(columns),
        rows=marked(rows, columns),
        notes=notes.texts,
        about=f"{measure.words}; mean ± standard deviation over seeds and splits. Lower is better.",
        command=results.command(results.suite),
    )


def _merged(layout: Grid) -> Grid:
    """Tell the declared needs of a method once per row, with all the datasets that lack them."""
    lacks: dict[tuple[Line, str], dict[str, None]] = {}
    for (line, _), place in layout.places.items():
        for gap in place.gaps:
            need, _, lack = gap.reason.partition(", but ")
            if gap.kind == "needs" and lack:
                lacks.setdefault((line, need), {})[lack.rstrip(".")] = None

    def told(line: Line, gap: Gap) -> Gap:
        need = gap.reason.partition(", but ")[0]
        if gap.kind != "needs" or (line, need) not in lacks:
            return gap
        return replace(gap, reason=f"{need}, but {'; '.join(sorted(lacks[line, need]))}.")

    places = {
        (line, name): replace(place, gaps=tuple(told(line, gap) for gap in place.gaps))
        for (line, name), place in layout.places.items()
    }
    return replace(layout, places=places)
