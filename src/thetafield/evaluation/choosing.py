"""What the data decide in a method: options chosen one after the other on held-out training domains, inside `fit`."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.data.folds import Fold, domain_folds, most_folds
from thetafield.errors import DataError, OptionError, ThetafieldError
from thetafield.evaluation.calibrating import Observed, calibrate, observe
from thetafield.evaluation.ledger import Ledger
from thetafield.evaluation.scores import errors_of_each
from thetafield.evaluation.selection import numbered
from thetafield.evenly import evenly
from thetafield.fields.base import ParameterField
from thetafield.fields.model import FieldModel
from thetafield.fields.shrunk import ShrunkField
from thetafield.fields.transported import TransportedField
from thetafield.methods.base import METHODS
from thetafield.options import checked
from thetafield.training.fit import Report
from thetafield.training.recall import Recall
from thetafield.training.train import Trained, data_digest

NAME = "choice.json"
FOLDS, JUDGED = 4, 36  # a quarter of the domains is held out at a time, until that many have been
FEWEST, FEW = 12, 24  # training domains from which a choice is made, and from which it is one of all options
FOLDS_OF_FEW, JUDGED_OF_FEW = 10, 10  # of few domains, a quarter less is another problem
OBSERVED = 500  # held-out domains of a fold that are enough to calibrate trust by
SHORTER = 3  # trainings for a choice have this part of the epochs
HOPELESS = 1.02  # a setting whose error on the first fold is so many times the best one's is not tried on the others
BLENDS = ((1, None), (2, None), (4, None), (8, None), (8, 0.5))
SHRINKS = (1.0, 0.75, 0.5, 0.25, 0.0)
REACHES = (None, 3.0, 1.0)
PLAIN = {"blend": 1, "bandwidth": None, "shrink": 0.0, "reach": None}  # of a start alone, which leaves nothing to set
Train = Callable[..., Trained]  # of domains, with keywords options, report and recall
Dials = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Candidate:
    """One setting with its error on the held-out domains, under its best dials.

    Args:
        options: What it sets.
        dials: What of it is set after training: blend, bandwidth, shrink and reach.
        score: Mean error over the held-out domains; None where training failed.
        per_domain: Error of each held-out domain, fold after fold.
        folds: How many folds it was tried on.
        seconds: Time of training and scoring.
        failure: The sentence with which training ended, if it failed.
    """

    options: dict[str, Any]
    dials: dict[str, Any]
    score: float | None
    per_domain: list[float]
    folds: int
    seconds: float
    failure: str | None = None

    def beats(self, other: "Candidate") -> bool:
        """Return whether this one errs less on the same domains, by more than the standard error of the difference.

        With few domains a plain minimum over several settings is mostly luck.
        """
        if self.score is None or self.folds < other.folds:
            return False
        if other.score is None:
            return True
        gain = np.subtract(other.per_domain, self.per_domain)
        return bool(gain.mean() > gain.std(ddof=1) / math.sqrt(len(gain)))


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
        return json.loads(json.dumps(content))


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
        report: Called after every epoch.
    """
    entry = METHODS[method]
    few = len(domains) < FEW
    folds = _folds(domains, seed, kind, few)
    full = checked(entry, dict(fixed), method)
    starts = open_options(entry.foundations, entry.choices_of_few if few else None, full, fixed)
    others = open_options(entry.choices, entry.choices_of_few if few else None, full, fixed)
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
    }
    ledger = Ledger(None if folder is None else folder / NAME, identity)
    trainings = (1 + (len(starts) + 2 if starts else 0) + len(others) + len(lengths)) * len(folds)
    candidates: list[Candidate] = []
    first_folds: dict[bool, list[float]] = {False: [], True: []}  # of whole trainings, and of starts alone
    observed: list[Observed | None] = []
    recalls = [Recall() for _ in folds]  # most settings begin with the same base and the same probes

    def judge(options: dict[str, Any], alone: bool = False) -> Candidate:
        number, bars = len(candidates), first_folds[alone]
        if number < len(ledger.entries):
            candidates.append(Candidate(**ledger.entries[number]["candidate"]))
            first = ledger.entries[number]["first"]
            bars.append(math.inf if first is None else first)
            seen = ledger.entries[number]["observed"]
            observed.append(None if seen is None else Observed(**seen))
            return candidates[-1]
        started = time.perf_counter()
        words = ", ".join(f"{name}={value}" for name, value in options.items()) or "defaults"
        errors: list[dict[Dials, np.ndarray]] = []
        models: list[FieldModel] = []
        failure = None
        try:
            for fold, (kept, held) in enumerate(folds):
                tell = numbered(report, number * len(folds) + fold, trainings, f"choosing, {words}")
                setting = {**full, **shorter, **options}
                trained = train(domains.select(kept), options=setting, report=tell, recall=recalls[fold])
                assert isinstance(trained.model, FieldModel)
                models.append(trained.model)
                errors.append(_errors(trained.model, domains.select(held), PLAIN if alone else fixed))
                if fold == 0 and _least(errors[0]) > HOPELESS * min(bars, default=math.inf):
                    break
        # A setting that diverges or does not fit is one that is not chosen.
        except (ThetafieldError, RuntimeError, ArithmeticError, MemoryError) as error:
            if not candidates and isinstance(error, OptionError | DataError):
                raise  # what was given cannot be, whatever is chosen beside it
            failure = str(error) if isinstance(error, ThetafieldError) else f"{type(error).__name__}: {error}"
        # What failed on a later fold is no bar for others on the first.
        bars.append(_least(errors[0]) if failure is None else math.inf)
        score, dials, per_domain = None, (), np.empty(0)
        if failure is None:
            whole = {dials: np.concatenate([fold[dials] for fold in errors]) for dials in errors[0]}
            score, dials = _least(whole), min(whole, key=lambda dials: whole[dials].mean())
            per_domain = whole[dials]
        observed.append(None)
        if failure is None and len(models) == len(folds) and not alone:
            for model, (kept, held) in zip(models, folds, strict=True):
                turn(model.field, dict(dials))
                some = domains.select(held[evenly(len(held), OBSERVED)])
                seen = observe(model, domains.select(kept), some)
                observed[-1] = seen if observed[-1] is None else observed[-1].joined(seen)
        seconds = time.perf_counter() - started
        found = Candidate(options, dict(dials), score, per_domain.tolist(), len(errors), seconds, failure)
        candidates.append(found)
        seen = None if observed[-1] is None else asdict(observed[-1])
        first = bars[-1] if failure is None else None
        ledger.append({"candidate": asdict(found), "first": first, "observed": seen})
        return found

    first = best = judge(shorter if lengths else {})
    if starts:
        start = judge(dict(entry.alone), alone=True)
        for name, value in starts if start.failure is None else ():  # without a base there is nothing to start from
            tried = judge({**start.options, name: value}, alone=True)
            start = tried if tried.beats(start) else start
        changes = {name: value for name, value in start.options.items() if name not in entry.alone}
        if changes:
            tried = judge({**first.options, **changes})
            best = tried if tried.beats(first) else first
    for name, value in others:
        tried = judge({**best.options, name: value})
        best = tried if tried.beats(best) else best
    for name, value in lengths:  # neither length is the plainer one
        tried = judge({**best.options, name: value})
        best = tried if tried.folds == best.folds and _error(tried) <= _error(best) else best
    if best.failure is not None:
        raise ThetafieldError(f"None of {len(candidates)} settings could be trained; the defaults: {best.failure}")
    number = candidates.index(best)
    seen = observed[number]
    assert seen is not None
    return Choice("error" if domains.classification else "mae", held_out, candidates, number, seen)


def open_options(
    choices: Mapping[str, tuple[Any, ...]],
    names: Sequence[str] | None,
    full: Mapping[str, Any],
    fixed: Mapping[str, Any],
) -> list[tuple[str, Any]]:
    """Return what there is to try beside what is set, one option and value after the other; of all names if None."""
    left = [name for name in choices if name not in fixed and (names is None or name in names)]
    return [(name, value) for name in left for value in choices[name] if full[name] != value]


def _folds(domains: DomainSet, seed: int, kind: str, few: bool) -> list[Fold]:
    """Return which domains are held out, in turn."""
    count, wanted = (FOLDS_OF_FEW, JUDGED_OF_FEW) if few else (FOLDS, JUDGED)
    judged = min(count, math.ceil(wanted * count / len(domains)))
    if kind in ("random", "blocked"):
        return domain_folds(domains, count, seed, kind)[:judged]
    return domain_folds(domains, min(judged, FOLDS, most_folds(kind, *domains.z.shape)), seed, kind)


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


def _least(errors: Mapping[Dials, np.ndarray]) -> float:
    """Return the mean error under the best dials."""
    return min(float(each.mean()) for each in errors.values())


def _errors(model: FieldModel, held: DomainSet, fixed: Mapping[str, Any]) -> dict[Dials, np.ndarray]:
    """Return the error of each held-out domain under every setting of the dials that are not fixed."""
    settings = _dials(model.field, fixed)
    found = errors_of_each(model, held, settings, lambda dials: turn(model.field, dict(dials)))
    return dict(zip(settings, found, strict=True))


def _dials(field: ParameterField, fixed: Mapping[str, Any]) -> list[Dials]:
    """Return the settings to try after training; the simplest first, as ties go to the first."""
    blends: list[Dials] = [(("blend", count), ("bandwidth", width)) for count, width in BLENDS]
    if "blend" in fixed:
        blends = [(("blend", fixed["blend"]), ("bandwidth", fixed.get("bandwidth")))]
    if not isinstance(field, ShrunkField):
        return blends
    shrinks = (fixed["shrink"],) if "shrink" in fixed else SHRINKS
    reaches = (fixed["reach"],) if "reach" in fixed else REACHES
    # Where nothing of it is added, it does not matter what was carried.
    return [
        (*blend, ("shrink", shrink), ("reach", reach))
        for blend, shrink, reach in product(blends, shrinks, reaches)
        if shrink or (blend == blends[0] and reach == reaches[0])
    ]


def turn(field: ParameterField, dials: Mapping[str, Any]) -> None:
    """Set what of a field is set after training."""
    moved = field.moved if isinstance(field, ShrunkField) else field
    assert isinstance(moved, TransportedField)
    moved.blend, moved.bandwidth = dials["blend"], dials["bandwidth"]
    if isinstance(field, ShrunkField):
        field.shrink = dials["shrink"]
        field.reach = None if dials["reach"] is None else dials["reach"] * moved.spacing
