"""What a comparison sends to its processes: a pilot that times a method, and a trial on one fold."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from thetafield.bench.trial import run_trial
from thetafield.compare.budget import lengths, shortened
from thetafield.compare.fold import Fold
from thetafield.compare.pace import PILOT
from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Dataset
from thetafield.evaluation.calibrating import Observed, calibrate, observe
from thetafield.evaluation.reliance import reliance
from thetafield.evaluation.scores import evaluate
from thetafield.fields.model import Model
from thetafield.fields.storage import read_model, save_model
from thetafield.files import plain
from thetafield.geometry.neighbours import nearest
from thetafield.methods.base import METHODS, as_today
from thetafield.training.train import pick_device, train_field

FORMAT = 3  # of results: where they come to hold something else, every job has another key


@dataclass(frozen=True)
class FoldJob:
    """What pilots and trials share: a fold, a method and its settings.

    Args:
        fold: The domains.
        method: Registry name of the method.
        options: Those of its options that are given.
        seed: Root seed.
        command: What the person typed.
        expected: About how many seconds it takes, where that is known.
    """

    fold: Fold
    method: str
    options: Mapping[str, Any]
    seed: int
    command: str = field(default="", compare=False)
    expected: float | None = field(default=None, compare=False)

    @property
    def dataset(self) -> str:
        """How the data are called."""
        return self.fold.name

    @property
    def dataset_label(self) -> str:
        """What displays call the fold."""
        return "all" if self.fold.number is None else f"fold {self.fold.number + 1}"

    @property
    def method_label(self) -> str:
        """What displays call the method."""
        return self.method

    @property
    def keep(self) -> bool:
        """Whether the field is kept: of a training on all domains."""
        return self.fold.number is None

    @property
    def record(self) -> dict[str, Any]:
        """All that determines the result."""
        content = {"job": type(self).__name__, "fold": self.fold.options, "method": self.method, "seed": self.seed}
        return plain(content | {"options": dict(self.options)})

    @property
    def labels(self) -> dict[str, Any]:
        """What does not determine it."""
        return {"dataset_label": self.dataset_label, "method_label": self.method_label, "keep": self.keep}

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits for the record, the format, and the method as it is today."""
        today = as_today(self.method, self.options)
        words = json.dumps(self.record | today | {"format": FORMAT}, sort_keys=True, allow_nan=False)
        return hashlib.sha256(words.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Pilot(FoldJob):
    """Short trainings, which tell how long a whole one takes.

    Args:
        start: Whether nothing but what the method starts from is trained, at the least share of that.
    """

    start: bool = False

    @property
    def dataset_label(self) -> str:
        """What displays call it."""
        return "pilot of its start" if self.start else "pilot"

    @property
    def record(self) -> dict[str, Any]:
        """All that determines the result."""
        return super().record | {"start": self.start}

    def run(self, out: Path, *, device: str, checkpoint_every: float, crowded: bool = False) -> dict[str, Any]:
        """Train for two shares of the method's length, or for its start, and return the seconds of each."""
        data = self.fold.build(self.seed)
        METHODS[self.method].check_needs(data.train, data.ordered, self.fold.name)
        chosen = {"select": False} if METHODS[self.method].choices else {}
        parts = [shortened(self.method, share, self.options) for share in (PILOT[0], *PILOT)]
        if self.start:
            alone = METHODS[self.method].alone
            brief = dict.fromkeys(lengths(self.method, self.options), 1)
            parts = [{**brief, **alone}, {**shortened(self.method, 0.0, self.options), **alone}]
        seconds, scores = [], None
        for part in parts:
            started = time.perf_counter()
            scores = evaluate(_trained(self, data, {**self.options, **part, **chosen}, device), _held_out(data))
            seconds.append(time.perf_counter() - started)
        assert scores is not None
        return {
            "metric": scores.metric,
            "score": scores.score,
            "train_seconds": sum(seconds),
            "seconds": seconds[1:],  # the first one imports and warms up
        }


@dataclass(frozen=True)
class FoldTrial(FoldJob):
    """A method with its selection on the kept domains, scored on the held-out ones.

    Args:
        tune: Settings to draw and to judge on held-out domains of the kept ones.
        tune_folds: How many times these are held out.
        observed: What models of the folds did on domains that they had not seen, to calibrate the last model by.
    """

    tune: int = 0
    tune_folds: int = 1
    observed: Observed | None = field(default=None, compare=False)

    @property
    def record(self) -> dict[str, Any]:
        """All that determines the result."""
        return super().record | {"tune": self.tune, "tune_folds": self.tune_folds}

    def run(self, out: Path, *, device: str, checkpoint_every: float, crowded: bool = False) -> dict[str, Any]:
        """Run the trial; return its result with what its model did on the held-out domains."""
        result = run_trial(
            self.fold,
            self.method,
            seed=self.seed,
            out=out,
            options=self.options,
            tune_draws=self.tune,
            tune_folds=self.tune_folds,
            tune_by="macro",  # as the leaderboard does
            device=device,
            resume=True,
            checkpoint_every=checkpoint_every,
            crowded=crowded,
            laws=False,
        )
        model, data = read_model(out / "field").to(pick_device(device)), self.fold.build(self.seed)
        if self.fold.number is not None:
            return result | _looked_at(model, data, self.method, self.seed)
        if self.observed is not None:
            calibrate(model, self.observed, data.train)
            save_model(model, out / "field")
        return result


def _trained(job: FoldJob, data: Dataset, options: Mapping[str, Any], device: str) -> Model:
    return train_field(
        data.train,
        job.method,
        seed=job.seed,
        options=options,
        predictor=data.predictor,
        predictor_options=data.predictor_options,
        ordered=data.ordered,
        where=job.fold.name,
        standardise=data.standardise,
        device=device,
    ).model


def _held_out(data: Dataset) -> DomainSet:
    [held] = data.test.values()
    return held


def _looked_at(model: Model, data: Dataset, method: str, seed: int) -> dict[str, Any]:
    """Return each held-out domain's error and distance, what it owes to descriptors, and what trust is learned from."""
    held = _held_out(data)
    observed = observe(model, data.train, held)
    anchors, z = model.trust.anchors, model.scaler(held.z.cpu())
    distance = nearest(z, anchors.to(z))[0][:, 0].tolist() if z.shape[1] else [0.0] * len(held)
    return {
        "errors": observed.errors,
        "distance": distance,
        "reach": model.trust.reach,
        "reliance": reliance(model, data.train, held, seed) if METHODS[method].needs.reads else {},
        "observed": asdict(observed),
    }
