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
        asked = max(most, len(place.trials) + len(place.gaps))
        if len(values) < asked:
            said.append(notes.add(fewer(len(values), asked, place)))
        whole = len(values) == most
        cells[line] = replace(sized(summed_up(values, metric), means, metric), notes=tuple(said), whole=whole)
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
    word = {"needs": "N/A", "failed": "failed", "missing": "–"}.get(place.gaps[0].kind, "no data")
    reasons = dict.fromkeys(gap.reason for gap in place.gaps)
    return Cell(word=word, notes=tuple(notes.add(reason) for reason in reasons))


def fewer(count: int, most: int, place: Place) -> str:
    """Say why a cell has fewer repetitions than were asked for, or than the others of its column have."""
    said = [f"{count} of {most} repetitions"]
    waiting = sum(gap.kind == "missing" for gap in place.gaps)
    if waiting:
        said.append(f"{waiting} {'has' if waiting == 1 else 'have'} not been run yet")
    failed = [gap for gap in place.gaps if gap.kind == "failed"]
    if failed:
        said.append(f"{'; '.join(gap.occasion for gap in failed)} failed: {failed[0].reason.rstrip('.')}")
    others = dict.fromkeys(gap.reason.rstrip(".") for gap in place.gaps if gap.kind not in ("missing", "failed"))
    return f"{'; '.join([*said, *others])}."


def beside(
    cells: dict[Line, Cell], items: Mapping[Line, Item | None], printed: Callable[[Item], Printed | None]
) -> dict[Line, Cell]:
    """Put what the paper prints beside the cells."""
    return {
        line: replace(cell, printed=printed(item)) if (item := items[line]) is not None else cell
        for line, cell in cells.items()
    }
