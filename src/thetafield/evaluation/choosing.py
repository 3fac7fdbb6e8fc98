"""What the data decide in a method: options chosen one after the other on held-out training domains, inside `fit`."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from thetafield.data.domains import DomainSet
from thetafield.data.folds import Fold, domain_folds, most_folds
from thetafield.errors import ThetafieldError
from thetafield.evaluation.calibrating import Observed, calibrate
from thetafield.evaluation.judging import Candidate, Judge, Train
from thetafield.evaluation.ledger import Ledger
from thetafield.fields.model import FieldModel
from thetafield.files import plain
from thetafield.methods.base import METHODS, as_today
from thetafield.options import checked
from thetafield.training.fit import Report
from thetafield.training.train import Trained, data_digest

NAME = "choice.json"
FOLDS, JUDGED = 4, 36  # a quarter of the domains is held out at a time, until that many have been
FEWEST, FEW = 12, 24  # training domains from which a choice is made, and from which it is one of all options
FOLDS_OF_FEW, JUDGED_OF_FEW = 10, 10  # of few domains, a quarter less is another problem
SHORTER = 3  # trainings for a choice have this part of the epochs


@dataclass(frozen=True)
class Choice:
    """All candidates and the best of them.

    Args:
        metric: "error" or "mae".
        held_out: Positions of the held-out training domains, for each fold.
        candidates: In the order in which they were tried; the first is the defaults.
        best: Position of the best one.
        observed: What the best one did on the held-out domains.
    """

    metric: str
    held_out: list[list[int]]
    candidates: list[Candidate]
    best: int
    observed: Observed

    @property
    def options(self) -> dict[str, Any]:
        """What the best candidate sets, dials included."""
        return self.candidates[self.best].options | self.candidates[self.best].dials

    def record(self) -> dict[str, Any]:
        """Return the record as plain JSON values, without what was observed."""
        content = asdict(self)
        del content["observed"]
        return plain(content)


def is_chosen(method: str, options: Mapping[str, Any], domains: DomainSet) -> bool:
    """Return whether a method under these options leaves a choice to these training domains."""
    return bool(METHODS[method].choices and options.get("select") and len(domains) >= FEWEST)


def choose(
    domains: DomainSet,
    method: str,
    train: Train,
    *,
    seed: int,
    fixed: Mapping[str, Any],
    kind: str = "random",
    where: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    crowded: bool = False,
    report: Report | None = None,
) -> Choice:
    """Go through what a method leaves to the data, and keep of each option what clearly errs less on held-out domains.

    What training starts from is chosen first, by its own errors; the best of it is then tried as a start beside the
    default one, and the rest on the better of the two. Trainings have a third of the epochs; the last ones try all of
    them. What is set after training, the dials, is tried on each. Of few domains, fewer options are chosen, with more
    folds and all of the epochs.

    Args:
        domains: The training domains.
        method: Registry name of the method, which lists its `choices`.
        train: Trains on given domains with given options.
        seed: Root seed of the folds.
        fixed: Options that are not up for choice.
        kind: Which domains are held out: "random", "blocked", "edge" or "time".
        where: What else determines the errors, so that a choice made elsewhere is refused.
        folder: Where every candidate is recorded once it is known; those that are recorded there are not tried again.
        crowded: Whether others may use up the memory beside it: then a setting that found none is not lost for that.
        report: Called after every epoch.
    """
    entry = METHODS[method]
    few = len(domains) < FEW
    folds = _folds(domains, seed, kind)
    full = checked(entry, dict(fixed), method)
    starts, others = open_options(method, full, fixed, few)
    bare = full["epochs"] == 0  # then nothing is trained but the start
    # What is trained in the end is something that was tried: the whole length too, unless it is given.
    shorter = {} if few else {"epochs": math.ceil(full["epochs"] / SHORTER)}
    lengths = [] if few or "epochs" in fixed else [("epochs", full["epochs"])]
    held_out = [held.tolist() for _, held in folds]
    identity = {
        "method": method,
        "seed": seed,
        "fixed": dict(fixed),
        "starts": starts,
        "others": others,
        "held out": held_out,
        "where": dict(where or {}),
        "training data": data_digest(domains),
        "today": as_today(method, fixed),
    }
    judge = Judge(
        domains,
        folds,
        train,
        common={**full, **shorter, **(entry.alone if bare else {})},
        fixed=fixed,
        bare=bare,
        ledger=Ledger(None if folder is None else folder / NAME, identity),
        settings=1 + (len(starts) + (0 if bare else 2) if starts else 0) + len(others) + len(lengths),
        crowded=crowded,
        report=report,
    )
    first = best = judge(shorter if lengths else {})
    if starts:
        start = first if bare else judge(dict(entry.alone), alone=True)
        for name, value in starts:
            tried = judge({**start.options, name: value}, alone=True)
            start = tried if tried.beats(start) else start
        changes = {name: value for name, value in start.options.items() if name not in entry.alone}
        if bare:
            best = start
        elif changes:
            tried = judge({**first.options, **changes})
            best = tried if tried.beats(first) else first
    for name, value in others:
        tried = judge({**best.options, name: value})
        best = tried if tried.beats(best) else best
    for name, value in lengths:  # neither length is the plainer one
        tried = judge({**best.options, name: value})
        best = tried if tried.folds >= best.folds and _error(tried) < _error(best) else best
    if best.failure is not None:
        raise ThetafieldError(
            f"None of {len(judge.candidates)} settings could be trained; the defaults: {best.failure}"
        )
    number = judge.candidates.index(best)
    observed = judge.observed[number]
    assert observed is not None
    return Choice("error" if domains.classification else "mae", held_out, judge.candidates, number, observed)


def open_options(
    method: str, full: Mapping[str, Any], fixed: Mapping[str, Any], few: bool
) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Return what there is to try beside what is set, option by option: of the start, and of the rest.

    Args:
        method: Registry name of the method.
        full: All of its options.
        fixed: Those that were given.
        few: Whether there are few domains, which can tell less.
    """
    entry = METHODS[method]

    def left(choices: Mapping[str, tuple[Any, ...]]) -> list[tuple[str, Any]]:
        names = [name for name in choices if name not in fixed and (not few or name in entry.choices_of_few)]
        return [(name, value) for name in names for value in choices[name] if full[name] != value]

    starts = left(entry.foundations) if entry.has_start(full) else []
    return starts, [] if full["epochs"] == 0 else left(entry.choices)


def fold_count(kind: str, domains: int, most: int) -> int:
    """Return how many times domains are held out for a choice.

    Args:
        kind: Which domains are held out.
        domains: Number of domains.
        most: Most folds of that kind.
    """
    count, wanted = (FOLDS_OF_FEW, JUDGED_OF_FEW) if domains < FEW else (FOLDS, JUDGED)
    judged = min(count, math.ceil(wanted * count / domains))
    if kind == "random":
        return judged
    return min(max(judged, 2), FOLDS, most)  # one alone would ask about one way out, or one quarter


def _folds(domains: DomainSet, seed: int, kind: str) -> list[Fold]:
    """Return which domains are held out, in turn."""
    judged = fold_count(kind, len(domains), most_folds(domains.z, kind))
    if kind == "random":
        return domain_folds(domains, FOLDS_OF_FEW if len(domains) < FEW else FOLDS, seed, kind)[:judged]
    return domain_folds(domains, judged, seed, kind)


def train_chosen(
    domains: DomainSet,
    method: str,
    train: Train,
    *,
    seed: int,
    given: Mapping[str, Any],
    report: Report | None = None,
) -> tuple[Trained, Choice | None]:
    """Train on all domains, after they have chosen what was not given, where the method leaves that to them."""
    full = checked(METHODS[method], dict(given), method)
    if not is_chosen(method, full, domains):
        return train(domains, options=full, report=report), None
    choice = choose(domains, method, train, seed=seed, fixed=given, report=report)
    trained = train(domains, options=full | choice.options, report=report)
    assert isinstance(trained.model, FieldModel)
    calibrate(trained.model, choice.observed, domains)
    return trained, choice


def _error(candidate: Candidate) -> float:
    return math.inf if candidate.score is None else candidate.score
