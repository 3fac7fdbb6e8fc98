"""What falls short: of the paper, of other methods, and of being there at all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from thetafield.methods.base import METHODS
from thetafield.report.store.grid import grid
from thetafield.report.store.items import Trial
from thetafield.report.store.pairing import Duel, p_words, signed
from thetafield.report.store.paper import FAMILY, is_ours, paper
from thetafield.report.store.reading import Results, changed_suites, missing_suites
from thetafield.report.store.sweeps import Panel
from thetafield.report.store.table import Cell, Column, Table

# What the kinds of shortfall are called, in the order in which they are told.
KINDS = {
    "paper": "Worse than the paper",
    "claim": "What the paper shows and these runs do not",
    "rival": "Not ahead of the best other method",
    "unsteady": "Unsteady over seeds",
    "baseline": "Other methods weaker here than in the paper, which flatters ours",
    "missing": "Missing",
}
GATED = "NeuralLio (paper), with gate"


@dataclass(frozen=True)
class Shortfall:
    """One thing that falls short.

    Args:
        kind: One of `KINDS`.
        what: What it is about.
        text: What is the matter.
        size: How grave it is, among those of its kind.
    """

    kind: str
    what: str
    text: str
    size: float = 0.0


def beside_the_paper(table: Table, baselines: bool = False) -> Iterable[Shortfall]:
    """Yield cells that are worse than what the paper prints, at the digits that it prints.

    Args:
        table: The table.
        baselines: Whether rows that are not ours are methods of other people, whose weakness flatters ours.
    """
    for position, column in enumerate(table.columns):
        for row in table.rows:
            cell = row.cells[position]
            if not _printed(cell) or not (row.ours or baselines):
                continue
            behind, spread = worse(column, cell), _spread(cell)
            # A method that reaches the paper under one of its settings, tuned or not, is not weak.
            same = [c for other in table.rows if other.method == row.method and _printed(c := other.cells[position])]
            weak = all(worse(column, c) > _spread(c) for c in same) and cell is min(same, key=lambda c: c.value or 0.0)
            if behind <= 0 or not (row.ours or weak):
                continue
            near = ", within one standard deviation" if behind <= spread else ""
            text = f"{cell.text} here, {_text(cell)} in the paper{near}."
            kind = "paper" if row.ours else "baseline"
            yield Shortfall(kind, f"{row.title}, {column.title.strip()}", text, behind / max(spread, 1e-9))


def _printed(cell: Cell) -> bool:
    return cell.value is not None and cell.printed is not None and cell.printed.mean is not None


def _spread(cell: Cell) -> float:
    return max(cell.spread or 0.0, (cell.printed.std if cell.printed else 0.0) or 0.0)


def _text(cell: Cell) -> str:
    return cell.printed.text if cell.printed else ""


def worse(column: Column, cell: Cell) -> float:
    """Return by how much a cell is worse than what the paper prints, at the digits that it prints; at most 0 if not."""
    printed = cell.printed
    assert printed is not None and printed.mean is not None and cell.value is not None
    digits = len(printed.text.partition(" ")[0].partition(".")[2])
    behind = round(round(cell.value, digits) - printed.mean, digits)
    return -behind if column.better == "high" else behind


def against_rivals(duels: Sequence[Duel]) -> Iterable[Shortfall]:
    """Yield the datasets on which ours is not clearly ahead of the best other method."""
    columns = dict.fromkeys(duel.column for duel in duels)
    for column in columns:
        here = [duel for duel in duels if duel.column == column]
        duel = next((duel for duel in here if duel.method == FAMILY), here[0])
        if duel.is_won:
            continue
        verdict = "errs less" if duel.is_lost else "is not clearly beaten"
        text = (
            f"{duel.rival} {verdict}: {duel.rival_error:.{duel.digits}f} against {duel.ours_error:.{duel.digits}f} of "
            f"{duel.ours} (per domain {signed(duel.paired.difference, duel.digits)}, interval {duel.interval}; "
            f"p {p_words(duel.p)})."
        )
        yield Shortfall("rival", column, text, duel.paired.difference / (duel.rival_error or 1.0))


def unsteady(results: Results) -> Iterable[Shortfall]:
    """Yield experiments of ours in which one seed errs more than twice as much as the middle one, and by a point.

    Of the seeds under one split: another split may well be harder.
    """
    for (line, column), place in grid(results).places.items():
        if is_ours(line.method) and results.suite != "ablation":
            yield from _lost(f"{line.title} on {column}", place.trials)


def unsteady_along(panel: Panel) -> Iterable[Shortfall]:
    """Yield the same of a sweep, for the line of the method that the report is about: its variants may well break."""
    for point in panel.lines.get(METHODS[FAMILY].title, ()):
        if panel.key == "score":
            yield from _lost(f"{METHODS[FAMILY].title}, {panel.label}: {point.x:g}", point.place.trials)


def _lost(what: str, trials: Sequence[Trial]) -> Iterable[Shortfall]:
    """Yield the seed of each split that is far behind the middle one, if there is one."""
    for split in dict.fromkeys(trial.repetition[1] for trial in trials):
        here = {trial.result["score"]: trial for trial in trials if trial.repetition[1] == split}
        scores = [trial.result["score"] for trial in trials if trial.repetition[1] == split]
        if len(scores) < 3:
            continue
        middle, most = median(scores), max(scores)
        if most > 2 * middle and (most - middle > 1 or here[most].result["metric"] != "error"):
            text = f"{here[most].occasion} came to {most:.3g}, where the middle one of {len(scores)} is {middle:.3g}."
            yield Shortfall("unsteady", what, text, most / (middle or most))


def beyond_bounds(panel: Panel) -> Iterable[Shortfall]:
    """Yield numbers of training domains at which ours errs more than the paper's text says."""
    for label, points in panel.lines.items():
        for point in points:
            cell, item = panel.cell(point), point.place.item
            bound = paper()["convergence"].get(f"{point.x:g}")
            if cell is None or cell.value is None or bound is None or item is None or item.dataset != "two-moons":
                continue
            if is_ours(item.method) and cell.value >= bound:
                text = f"{cell.text} here, below {bound:g} by the paper's text."
                yield Shortfall("paper", f"{label} with {point.x:g} training domains", text, cell.value / bound)


def not_needed(table: Table) -> Iterable[Shortfall]:
    """Yield ablations that err less than half as much as the paper prints: there, what they lack was worth more."""
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            printed = cell.printed
            if row.ours or cell.value is None or printed is None or printed.mean is None:
                continue
            if cell.value < printed.mean / 2:
                text = f"{cell.text} here, {printed.text} in the paper: what it lacks is worth less here."
                yield Shortfall("claim", f"{row.title}, {column.title}", text, printed.mean / max(cell.value, 1e-9))


def gate_in_noise(panel: Panel) -> Iterable[Shortfall]:
    """Yield what the gate does not do under the most noise, where the paper has it "significantly more stable"."""
    plain = METHODS[f"{FAMILY}-paper"].title
    lines = [{point.x: panel.cell(point) for point in panel.lines.get(name, ())} for name in (plain, GATED)]
    shared = [x for x, cell in lines[0].items() if cell and lines[1].get(x)]
    if not shared:
        return
    without, gated = (line[max(shared)] for line in lines)
    assert without is not None and gated is not None
    if (gated.value or 0.0) > (without.value or 0.0) / 2:
        text = f"{gated.text} with {max(shared):g} coordinates of noise, {without.text} without the gate."
        yield Shortfall("claim", GATED, text, max(shared))


def missing(results: Results) -> Iterable[Shortfall]:
    """Yield what has no result, suite by suite; what a method does not apply to is not missed."""
    words = {"failed": "failed", "missing": "are not run yet", "data": "are without data here"}
    for suite in results.suites:
        part = results.of(suite)
        for kind, said in words.items():
            gaps = [gap for gap in part.gaps if gap.kind == kind]
            if gaps:
                names = Counter(gap.column for gap in gaps)
                listed = ", ".join(f"{count} on {name}" for name, count in names.most_common(6))
                more = f" and {len(names) - 6} more" if len(names) > 6 else ""
                text = f"{len(gaps)} of {len(part.items)} trials {said} ({listed}{more})."
                yield Shortfall("missing", suite, text, float(len(gaps)))
    for suite, (got, lost) in changed_suites(results).items():
        if got:
            words = "trial of the suite as it is today is" if got == 1 else "trials of the suite as it is today are"
            text = f"{got} {words} not among them: `{results.command(suite)}`."
            yield Shortfall("missing", suite, text, float(got))
        if lost:
            words = "trial is shown that the suite has" if lost == 1 else "trials are shown that the suite has"
            text = f"{lost} {words} no more: `{results.command(suite)}` records it as it is today."
            yield Shortfall("missing", suite, text, float(lost))
    others = missing_suites(results)
    if others:
        listed = ", ".join(others)
        yield Shortfall("missing", "other suites", f"nothing is stored of {listed}: `{results.command('SUITE')}`.")


def ordered(found: Iterable[Shortfall]) -> dict[str, list[Shortfall]]:
    """Return shortfalls by kind, the gravest first; kinds without any are left out."""
    # Two suites may share a trial, and need not both say so.
    kept = sorted({(one.kind, one.what, one.text): one for one in found}.values(), key=lambda one: -one.size)
    by_kind = {kind: [one for one in kept if one.kind == kind] for kind in KINDS}
    return {kind: ones for kind, ones in by_kind.items() if ones}
