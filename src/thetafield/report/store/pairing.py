"""Whether two methods differ: errors paired domain by domain."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import numpy as np

from thetafield.evaluation.pairs import LEVEL, Paired
from thetafield.report.store.grid import Line, Place, grid
from thetafield.report.store.items import Trial
from thetafield.report.store.paper import FAMILY, is_ours
from thetafield.report.store.reading import Results
from thetafield.report.store.table import Cell, Column, Row, Table, decimals, unit

CLEAR = 0.05


@dataclass(frozen=True)
class Duel:
    """One of our methods against the best of the others on one dataset.

    Args:
        column: The dataset.
        method: Registry name of ours.
        ours: How tables call it.
        rival: The one among the others that errs least beside it.
        ours_error: Mean error of ours, on the seeds and splits that both have.
        rival_error: Mean error of the other.
        metric: "error" or "mae".
        paired: What became of it.
        p: Its p-value, corrected for the number of duels (Holm); None where there are too few domains.
    """

    column: str
    method: str
    ours: str
    rival: str
    ours_error: float
    rival_error: float
    metric: str
    paired: Paired
    p: float | None = None

    @property
    def is_won(self) -> bool:
        """Whether ours clearly errs less: the whole interval is below zero, and the corrected test agrees."""
        return self.paired.high < 0 and self.p is not None and self.p < CLEAR

    @property
    def is_lost(self) -> bool:
        """Whether ours clearly errs more."""
        return self.paired.low > 0 and self.p is not None and self.p < CLEAR

    @property
    def digits(self) -> int:
        """Digits behind the point of its errors and of their difference."""
        return decimals(self.metric, [self.ours_error, self.rival_error], 5)

    @property
    def interval(self) -> str:
        """The interval of the difference in words."""
        ends = self.paired.low, self.paired.high
        return " to ".join(signed(end, self.digits) for end in ends) if np.isfinite(ends).all() else "too few"


def paired(ours: Sequence[Trial], rival: Sequence[Trial]) -> Paired | None:
    """Compare two methods on the domains that both were scored on; None where they share no seed and split.

    A pair is one unseen domain: error of ours minus error of the other, under the same seed and split, hence with the
    same training domains and the same samples. The differences of one domain, by its name, are then averaged over
    seeds and splits: these are repeated looks at one domain, and only their mean may count as one observation. Where
    domains are drawn anew with the seed, which of them share a name is arbitrary: means of independent differences are
    independent still, so the same rule is sound there too, and nobody has to know which kind a dataset is.

    On these pairs: Wilcoxon's signed-rank test (zeros as Pratt ranks them), and a percentile bootstrap over domains for
    the mean. Both speak about domains like these under the trainings at hand; how much a training varies is what the
    standard deviation over seeds says. On how many domains the first errs less is counted under every seed and split: a
    mean over domains that only share a name has a sign of its own.
    """
    theirs = {trial.repetition: _errors(trial) for trial in rival}
    found: dict[Any, list[float]] = defaultdict(list)
    for trial in ours:
        other = theirs.get(trial.repetition, {})
        for name, error in _errors(trial).items():
            if name in other:
                found[name].append(error - other[name])
    if not found:
        return None
    outcome = Paired.of([np.array([np.mean(each) for each in found.values()])], min(map(len, found.values())))
    looks = np.concatenate([np.array(each) for each in found.values()])
    return replace(outcome, better=float((looks < 0).mean()), looks=len(looks))


def _errors(trial: Trial) -> dict[Any, float]:
    """Return the error of each unseen domain by its name; a result that tells no names has them by split and place."""
    errors = trial.result["per_domain"]
    places = [(trial.repetition[1], len(errors), position) for position in range(len(errors))]
    return dict(zip(trial.result.get("domains") or places, map(float, errors), strict=True))


def duels(results: Results) -> list[Duel]:
    """Set our methods against the best of the others on every dataset of a suite.

    The other is picked by its test error under the seeds and splits that both have, which favours it.
    """
    layout, found = grid(results), []
    for name in layout.columns:
        places = {line: place for line in layout.lines if (place := layout.at(line, name)).trials}
        others = {line: place for line, place in places.items() if not line.method.startswith(FAMILY)}
        for line in (line for line in places if is_ours(line.method)):
            rival = best_of(others, places[line])
            outcome = None if rival is None else paired(places[line].trials, others[rival].trials)
            if rival is not None and outcome is not None:
                metric = places[line].trials[0].result["metric"]
                own, theirs = (mean(scores) for scores in shared(places[line], others[rival]))
                found.append(Duel(name, line.method, line.title, rival.title, own, theirs, metric, outcome))
    corrected = holm([duel.paired.p for duel in found])
    return [replace(duel, p=p) for duel, p in zip(found, corrected, strict=True)]


def best_of(others: Mapping[Line, Place], ours: Place) -> Line | None:
    """Return which of the others errs least beside ours, each on the seeds and splits that both have.

    A plain mean over fewer of them would be one of other data, low where a hard split is missing.
    """
    apart = {line: shared(ours, place) for line, place in others.items()}
    leads = {line: mean(theirs) - mean(own) for line, (own, theirs) in apart.items() if own}
    return min(leads, key=leads.__getitem__, default=None)


def shared(ours: Place, other: Place) -> tuple[list[float], list[float]]:
    """Return the scores of both under the seeds and splits that both have."""
    theirs = {trial.repetition: trial.result["score"] for trial in other.trials}
    both = [trial for trial in ours.trials if trial.repetition in theirs]
    return [trial.result["score"] for trial in both], [theirs[trial.repetition] for trial in both]


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for their number (Holm's step-down rule).

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    order = sorted((p, i) for i, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    so_far = 0.0
    for done, (p, i) in enumerate(order):
        so_far = max(so_far, min(1.0, (len(order) - done) * p))
        corrected[i] = so_far
    return corrected


def duel_table(results: Results, found: Sequence[Duel]) -> Table:
    """Return the paired comparisons of a suite as a table."""
    columns = (
        Column("Against the best other", "", ""),
        Column("Difference", "of the errors", ""),
        Column(f"{LEVEL} % interval", "over domains", ""),
        Column("p", "Wilcoxon, Holm", ""),
        Column("Better on", "of the domains, each under every seed and split", ""),
    )
    rows = []
    for duel in found:
        outcome = duel.paired
        cells = (
            Cell(word=duel.rival),
            Cell(word=signed(outcome.difference, duel.digits), value=outcome.difference),
            Cell(word=duel.interval),
            Cell(word=p_words(duel.p), value=duel.p),
            Cell(word=f"{100 * outcome.better:.0f} % of {outcome.looks:,}", value=outcome.better),
        )
        rows.append(Row(f"{duel.ours} on {duel.column}", cells))
    metrics = " or ".join(dict.fromkeys(unit(duel.metric) for duel in found))
    return Table(
        name=f"{results.suite}-paired",
        title="Ours against the best of the others, domain by domain",
        head="Method and data",
        columns=columns,
        rows=tuple(rows),
        about=(
            f"Differences of the mean over domains ({metrics}); below zero, ours errs less. Errors are paired domain "
            "by domain under the same seed and split, and averaged over seeds and splits. The other method is the one "
            "that errs least beside ours under the seeds and splits that both have, which favours it."
        ),
        command=results.command(results.suite),
    )


def signed(value: float, digits: int) -> str:
    """Return a number with its sign.

    >>> signed(-1.234, 2), signed(0.5, 1)
    ('−1.23', '+0.5')
    """
    return f"{'−' if value < 0 else '+'}{abs(value):.{digits}f}"


def p_words(p: float | None) -> str:
    """Return a p-value as a table prints it.

    >>> p_words(1e-9), p_words(0.034), p_words(None)
    ('< 0.001', '0.034', 'too few')
    """
    if p is None:
        return "too few"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
