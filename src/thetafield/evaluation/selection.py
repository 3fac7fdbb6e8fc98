"""Tuning: settings drawn from a method's search space, judged on held-out training domains and on nothing else."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from thetafield.data.domains import DomainSet
from thetafield.data.folds import domain_folds
from thetafield.errors import OptionError, ThetafieldError
from thetafield.evaluation.ledger import Ledger
from thetafield.evaluation.scores import evaluate
from thetafield.files import plain
from thetafield.memory import is_used_up
from thetafield.methods.base import METHODS, as_today
from thetafield.methods.space import draw_settings
from thetafield.options import checked, schema
from thetafield.streams import numpy_stream
from thetafield.training.fit import Progress, Report
from thetafield.training.train import Trained, data_digest

NAME = "tuning.json"
Train = Callable[..., Trained]  # of domains, with keywords options and report


@dataclass(frozen=True)
class Draw:
    """One setting with its error on the held-out domains.

    Args:
        options: What it sets; nothing for the defaults.
        score: Error on the held-out domains, None where training failed.
        seconds: Time of training and scoring.
        failure: The sentence with which training ended, if it failed.
    """

    options: dict[str, Any]
    score: float | None
    seconds: float
    failure: str | None = None


@dataclass(frozen=True)
class Selection:
    """All draws and which of them was best.

    Args:
        metric: "error" or "mae".
        space: What was drawn from, in words.
        held_out: The ids of the held-out training domains, for each fold.
        draws: Every draw in order; the first is the defaults.
        best: Position of the best draw.
    """

    metric: str
    space: dict[str, str]
    held_out: list[list[Any]]
    draws: list[Draw]
    best: int

    @property
    def options(self) -> dict[str, Any]:
        """What the best draw sets."""
        return self.draws[self.best].options

    def record(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return plain(asdict(self))


def tune(
    domains: DomainSet,
    method: str,
    train: Train,
    *,
    draws: int,
    seed: int,
    fixed: Mapping[str, Any],
    folds: int = 1,
    kind: str = "random",
    by: str = "score",
    where: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    crowded: bool = False,
    report: Report | None = None,
) -> Selection:
    """Try the defaults and `draws` settings on a part of the training domains, and judge them on the rest.

    Args:
        domains: The training domains.
        method: Registry name of the method.
        train: Trains on given domains with given options.
        draws: Number of settings beside the defaults.
        seed: Root seed of the draws and of the held-out domains.
        fixed: Options that are not drawn.
        folds: How many times domains are held out; a setting's score is the mean.
        kind: Which domains are held out: "random", "blocked", "edge" or "time".
        by: Which error of the held-out domains counts: "score", in which every sample does, or "macro", in which every
            domain does.
        where: What else determines the scores (dataset, predictor, device), so that draws of another run are refused.
        folder: Where every draw is recorded once it is done; draws that are recorded there are not repeated.
        crowded: Whether others may use up the memory beside it: then a draw that found none is not lost for that.
        report: Called after every epoch.

    Raises:
        ThetafieldError: No draw could be trained; the sentence is that of the defaults.
    """
    entry = METHODS[method]
    if not set(entry.space) - set(fixed):
        raise OptionError(f"{entry.title} has nothing left to tune: set fewer options, or leave out the tuning.")
    parts = [tuple(map(domains.select, fold)) for fold in domain_folds(domains, folds, seed, kind)]
    settings = [{}] + [draw_settings(entry.space, numpy_stream(seed, "tune", n), fixed) for n in range(draws)]
    held_out = [[_plain(name) for name in held.ids.tolist()] for _, held in parts]
    identity = {
        "method": method,
        "seed": seed,
        "fixed": dict(fixed),
        "settings": settings,
        "held out": held_out,
        "by": by,
        "where": dict(where or {}),
        "training data": data_digest(domains),
        "today": as_today(method, fixed),
    }
    ledger = Ledger(None if folder is None else folder / NAME, identity)
    # Settings as they were drawn: tuples, where JSON has lists.
    stored = zip(ledger.entries, settings, strict=False)
    done = [Draw(**(entry | {"options": setting})) for entry, setting in stored]
    metric = "error" if domains.classification else "mae"
    # A draw may come to what another one, or the defaults, have been: it is trained once.
    defaults = {name: default for name, (_, default) in schema(entry).items()}
    whole = [{**defaults, **fixed, **each} for each in settings]
    for number in range(len(done), len(settings)):
        twin = whole.index(whole[number])
        if twin < number:
            done.append(replace(done[twin], options=settings[number], seconds=0.0))
            ledger.append(asdict(done[-1]))
            continue
        started = time.perf_counter()
        score, failure = None, None
        try:
            options = checked(entry, {**fixed, **settings[number]}, method)
            scores = []
            for fold, (kept, held) in enumerate(parts):
                tell = numbered(
                    report, number * folds + fold, len(settings) * folds, _words(number, draws, fold, folds)
                )
                scores.append(getattr(evaluate(train(kept, options=options, report=tell).model, held), by))
            score = sum(scores) / len(scores)
        # A setting that diverges, does not fit or needs too much memory is a draw like any other, and lost.
        except (ThetafieldError, RuntimeError, ArithmeticError, MemoryError) as error:
            if crowded and is_used_up(error):
                raise
            failure = str(error) if isinstance(error, ThetafieldError) else f"{type(error).__name__}: {error}"
        done.append(Draw(settings[number], score, time.perf_counter() - started, failure))
        ledger.append(asdict(done[-1]))
    errors = [draw.score if draw.score is not None else float("inf") for draw in done]
    if min(errors) == float("inf"):
        raise ThetafieldError(f"None of {len(done)} settings could be trained; the defaults: {done[0].failure}")
    return Selection(
        metric=metric,
        space={name: str(part) for name, part in entry.space.items() if name not in fixed},
        held_out=held_out,
        draws=done,
        best=errors.index(min(errors)),
    )


def _plain(name: Any) -> Any:
    """Return a domain's id as JSON can hold it."""
    return name if isinstance(name, str | int | float | bool) else str(name)


def _words(number: int, draws: int, fold: int, folds: int) -> str:
    """Return which training of a tuning this is."""
    setting = f"draw {number} of {draws}" if number else "defaults"
    return setting if folds == 1 else f"{setting}, fold {fold + 1} of {folds}"


def numbered(report: Report | None, number: int, total: int, words: str) -> Report | None:
    """Return a report that says which training this is, and counts all of them together."""
    if report is None:
        return None

    def tell(progress: Progress) -> None:
        done = number * progress.total + progress.done
        report(replace(progress, phase=f"{words}, {progress.phase}", done=done, total=total * progress.total))

    return tell
