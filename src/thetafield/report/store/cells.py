"""The cells of tables: the repetitions of an experiment summed up, or the reason why there are none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from thetafield.report.store.grid import Line, Place
from thetafield.report.store.items import Item, Trial
from thetafield.report.store.paper import Printed, is_ours, is_whole
from thetafield.report.store.table import Cell, Notes, sized


def column_cells(
    placed: dict[Line, Place], notes: Notes, read: Callable[[Trial], float | None], metric: str
) -> dict[Line, Cell]:
    """Return the cells of one column."""
    items = [item for place in placed.values() for item in (*place.trials, *place.gaps)]
    most = len({item.repetition for item in items if isinstance(item, Trial)})
    found = {line: [v for trial in place.trials if (v := read(trial)) is not None] for line, place in placed.items()}
    means = [fmean(values) for values in found.values() if values]
    cells = {}
    for line, place in placed.items():
        values = found[line]
        if not values:
            cells[line] = empty(place, notes)
            continue
        said = []
        if len(values) < most:
            said.append(notes.add(fewer(len(values), most, place)))
        cells[line] = replace(sized(summed_up(values, metric), means, metric), notes=tuple(said))
    return cells


def summed_up(values: Sequence[float], metric: str) -> Cell:
    """Return mean and standard deviation of repetitions; of seconds the least, since whatever disturbs adds to them."""
    return Cell(value=min(values), count=len(values)) if metric == "seconds" else Cell.of(values)


def has_ours(items: Sequence[Item]) -> bool:
    """Say whether a row is ours: a variant with something taken from it is not what the report is about."""
    strict = any(item.suite in ("ablation", "laws") for item in items)
    return any(is_whole(item) if strict else is_ours(item.method) for item in items)


def empty(place: Place, notes: Notes) -> Cell:
    """Return the cell of an experiment without a number, with the reason."""
    if place.trials:
        return Cell(word="–", notes=(notes.add("The results hold nothing of this kind."),))
    if not place.gaps:
        return Cell(word="–", notes=(notes.add("The suite has no such trial."),))
    gap = place.gaps[0]
    word = {"needs": "N/A", "failed": "failed", "missing": "–"}.get(gap.kind, "no data")
    return Cell(word=word, notes=(notes.add(gap.reason),))


def fewer(count: int, most: int, place: Place) -> str:
    """Say why a cell has fewer repetitions than the others of its column."""
    failed = [gap for gap in place.gaps if gap.kind == "failed"]
    if failed:
        seeds = ", ".join(str(gap.spec["seed"]) for gap in failed)
        return f"{count} of {most} repetitions; seed {seeds} failed: {failed[0].reason}"
    waiting = sum(gap.kind == "missing" for gap in place.gaps)
    left = f"; {waiting} {'has' if waiting == 1 else 'have'} not been run yet" if waiting else ""
    return f"{count} of {most} repetitions{left}."


def beside(
    cells: dict[Line, Cell], items: Mapping[Line, Item | None], printed: Callable[[Item], Printed | None]
) -> dict[Line, Cell]:
    """Put what the paper prints beside the cells."""
    return {
        line: replace(cell, printed=printed(item)) if (item := items[line]) is not None else cell
        for line, cell in cells.items()
    }
