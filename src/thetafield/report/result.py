"""What a demo leaves behind: trained models with their scores, and the JSON that records them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thetafield.datasets.base import Dataset
from thetafield.evaluation import Scores
from thetafield.fields.model import FieldModel
from thetafield.files import plain
from thetafield.geometry.laws import Laws


@dataclass(frozen=True)
class MethodRun:
    """One method, trained and scored.

    Args:
        name: Registry name.
        title: How it is called in tables and figures.
        model: The learned field model.
        groups: Scores on each group of test domains.
        scores: Scores on all test domains together.
        train_seconds: Time of training.
        eval_seconds: Time of scoring.
    """

    name: str
    title: str
    model: FieldModel
    groups: Mapping[str, Scores]
    scores: Scores
    train_seconds: float
    eval_seconds: float


@dataclass(frozen=True)
class DemoResult:
    """Everything that the page shows.

    Args:
        seed: Root seed.
        device: The machine, in words.
        quick: Whether methods were trained for a few steps only.
        command: What made it.
        dataset: The domains.
        runs: The methods in the order of training; the last one has the transport that the figures look into.
        unseen: Positions in the test group "random" of the domains that figures look at.
        laws: The laws of the last method's transport.
        versions: Package → version.
        seconds: Time of everything up to the figures.
    """

    seed: int
    device: str
    quick: bool
    command: str
    dataset: Dataset
    runs: tuple[MethodRun, ...]
    unseen: tuple[int, ...]
    laws: Laws | None
    versions: Mapping[str, str]
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        content = {
            "seed": self.seed,
            "device": self.device,
            "quick": self.quick,
            "command": self.command,
            "dataset": self.dataset.name,
            "metric": self.runs[0].scores.metric,
            "methods": {run.name: _method_record(run) for run in self.runs},
            "laws": None if self.laws is None else asdict(self.laws),
            "versions": dict(self.versions),
            "seconds": self.seconds,
        }
        return plain(content)  # tuples become lists, as a reader of the file will see them


def pooled(groups: Mapping[str, Scores], sizes: Mapping[str, np.ndarray]) -> Scores:
    """Return the scores of all groups' domains together, given the number of samples of every domain by group.

    >>> one, two = (Scores.of("error", np.array([e]), np.array([10])) for e in (2.0, 4.0))
    >>> pooled({"a": one, "b": two}, {"a": np.array([10]), "b": np.array([30])}).score
    3.5
    """
    names = list(groups)
    per_domain = np.concatenate([groups[name].per_domain for name in names])
    return Scores.of(groups[names[0]].metric, per_domain, np.concatenate([sizes[name] for name in names]))


def _method_record(run: MethodRun) -> dict[str, Any]:
    return _scores_record(run.scores) | {
        "groups": {name: _scores_record(scores) for name, scores in run.groups.items()},
        "train_seconds": run.train_seconds,
        "eval_seconds": run.eval_seconds,
        "options": run.model.recipe.options,
    }


def _scores_record(scores: Scores) -> dict[str, Any]:
    return {
        "score": scores.score,
        "macro": scores.macro,
        "worst_decile": scores.worst_decile,
        "per_domain": scores.listed(),
    }
