"""Settings of a method, each tried on the same held-out training domains."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.data.folds import Fold
from thetafield.errors import DataError, DivergenceError, OptionError, ThetafieldError
from thetafield.evaluation.calibrating import Observed, observe
from thetafield.evaluation.dials import NOTHING_CARRIED, Dials, dialled_errors, least, turn
from thetafield.evaluation.ledger import Ledger
from thetafield.evaluation.selection import numbered
from thetafield.evenly import evenly
from thetafield.fields.model import FieldModel
from thetafield.memory import is_used_up
from thetafield.training.fit import Report
from thetafield.training.recall import Recall
from thetafield.training.train import Trained

OBSERVED = 500  # held-out domains of a fold that are enough to calibrate trust by
HOPELESS = 1.02  # a setting whose error on the first fold is so many times the best one's is not tried on the others
Train = Callable[..., Trained]  # of domains, with keywords options, report and recall


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


class Judge:
    """Tries settings one after the other, and remembers all of them.

    Args:
        domains: The training domains.
        folds: Which of them are kept and held out, in turn.
        train: Trains on given domains with given options.
        common: Options of all settings, which each may change.
        fixed: Those that were given, dials among them.
        bare: Whether all settings train what training starts from and nothing else.
        ledger: Where every candidate is recorded once it is known; those that are recorded there are not tried again.
        settings: How many there will be at most.
        crowded: Whether others may use up the memory beside it: then a setting that found none is not lost for that.
        report: Called after every epoch.
    """

    def __init__(
        self,
        domains: DomainSet,
        folds: Sequence[Fold],
        train: Train,
        *,
        common: Mapping[str, Any],
        fixed: Mapping[str, Any],
        bare: bool,
        ledger: Ledger,
        settings: int,
        crowded: bool,
        report: Report | None,
    ) -> None:
        self.domains, self.folds, self.train = domains, folds, train
        self.common, self.fixed, self.bare = common, fixed, bare
        self.ledger, self.settings, self.crowded, self.report = ledger, settings, crowded, report
        self.candidates: list[Candidate] = []
        self.observed: list[Observed | None] = []
        self.first_folds: dict[bool, list[float]] = {False: [], True: []}  # of whole trainings, and of starts alone
        self.recalls = [Recall() for _ in folds]  # most settings begin with the same base and the same probes

    def __call__(self, options: dict[str, Any], alone: bool = False) -> Candidate:
        """Return what a setting comes to.

        Args:
            options: What it sets.
            alone: Whether it trains what training starts from and nothing else: there are no dials to turn, and it is
                given up by the measure of others like it.
        """
        number, alone = len(self.candidates), alone or self.bare
        if number == len(self.ledger.entries):
            self.ledger.append(self._tried(options, alone))
        entry = self.ledger.entries[number]
        self.candidates.append(Candidate(**entry["candidate"]))
        self.observed.append(None if entry["observed"] is None else Observed(**entry["observed"]))
        self.first_folds[alone].append(math.inf if entry["first"] is None else entry["first"])
        return self.candidates[-1]

    def _tried(self, options: dict[str, Any], alone: bool) -> dict[str, Any]:
        """Train a setting and return what is recorded of it."""
        started = time.perf_counter()
        errors: list[dict[Dials, np.ndarray]] = []
        models: list[FieldModel] = []
        score, dials, per_domain, observed, failure = None, (), np.empty(0), None, None
        try:
            self._train_on_folds(options, alone, models, errors)
            whole = {dials: np.concatenate([fold[dials] for fold in errors]) for dials in errors[0]}
            best = min(whole, key=lambda dials: whole[dials].mean())
            if not np.isfinite(whole[best]).all():  # each fold has dials that work, and yet none work in all of them
                raise DivergenceError("No blend, bandwidth, shrink and reach give finite answers in every fold.")
            score, dials, per_domain = float(whole[best].mean()), best, whole[best]
        # A setting that diverges or does not fit is one that is not chosen.
        except (ThetafieldError, RuntimeError, ArithmeticError, MemoryError) as error:
            if self.crowded and is_used_up(error):
                raise
            if not self.candidates and isinstance(error, OptionError | DataError):
                raise  # what was given cannot be, whatever is chosen beside it
            failure = str(error) if isinstance(error, ThetafieldError) else f"{type(error).__name__}: {error}"
        if failure is None and len(models) == len(self.folds) and (self.bare or not alone):
            observed = self._observed(models, dials)
        seconds = time.perf_counter() - started
        given = {name: self.fixed.get(name, value) for name, value in dials}  # even where it makes no difference
        found = Candidate(options, given, score, per_domain.tolist(), len(errors), seconds, failure)
        return {
            "candidate": asdict(found),
            "first": least(errors[0]) if failure is None else None,  # what failed later is no bar for others
            "observed": None if observed is None else asdict(observed),
        }

    def _train_on_folds(
        self, options: dict[str, Any], alone: bool, models: list[FieldModel], errors: list[dict[Dials, np.ndarray]]
    ) -> None:
        """Fill in the model of each fold and its errors, of the first fold only where those are hopeless."""
        words = ", ".join(f"{name}={value}" for name, value in options.items()) or "defaults"
        before, all_trainings = len(self.candidates) * len(self.folds), self.settings * len(self.folds)
        for fold, (kept, held) in enumerate(self.folds):
            tell = numbered(self.report, before + fold, all_trainings, f"choosing, {words}")
            setting = {**self.common, **options}
            trained = self.train(self.domains.select(kept), options=setting, report=tell, recall=self.recalls[fold])
            assert isinstance(trained.model, FieldModel)
            models.append(trained.model)
            dials = {**NOTHING_CARRIED, **self.fixed, "shrink": 0.0} if alone else self.fixed
            errors.append(dialled_errors(trained.model, self.domains.select(held), dials))
            if fold == 0 and least(errors[0]) > HOPELESS * min(self.first_folds[alone], default=math.inf):
                return

    def _observed(self, models: Sequence[FieldModel], dials: Dials) -> Observed:
        """Return what the models did on the domains held out from them, to calibrate trust by."""
        found = []
        for model, (kept, held) in zip(models, self.folds, strict=True):
            turn(model.field, dict(dials))
            some = self.domains.select(held[evenly(len(held), OBSERVED)])
            found.append(observe(model, self.domains.select(kept), some))
        joined = found[0]
        for each in found[1:]:
            joined = joined.joined(each)
        return joined
