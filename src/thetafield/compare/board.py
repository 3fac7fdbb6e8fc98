"""The leaderboard: every method's error on each unseen domain, with an interval over domains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thetafield.bench.store import Store
from thetafield.compare.jobs import FoldTrial
from thetafield.evaluation.pairs import Paired, mean_interval
from thetafield.evaluation.scores import Scores
from thetafield.methods.base import METHODS


@dataclass(frozen=True, eq=False)
class Standing:
    """How a method did on unseen domains.

    Args:
        method: Registry name.
        scores: Its errors on the domains that were held out, in their order.
        low: Lower end of the interval of their mean.
        high: Upper end.
        seconds: All its selection, training and scoring, over all folds.
        results: What its trials came to, fold by fold.
    """

    method: str
    scores: Scores
    low: float
    high: float
    seconds: float
    results: Sequence[dict[str, Any]]

    @property
    def error(self) -> float:
        """Mean error over domains: each new domain counts the same, however many rows it will have."""
        return self.scores.macro

    @property
    def reads(self) -> bool:
        """Whether the method reads descriptors."""
        return METHODS[self.method].needs.reads

    def against(self, other: "Standing") -> Paired:
        """Compare with another method, domain by domain."""
        return Paired.of([self.scores.per_domain - other.scores.per_domain])

    def record(self) -> dict[str, Any]:
        """Return a line of the leaderboard as plain JSON values."""
        return {
            "method": self.method,
            "title": METHODS[self.method].title,
            "reads_descriptors": self.reads,
            "error": self.error,
            "low": self.low,
            "high": self.high,
            "worst_decile": self.scores.worst_decile,
            "score": self.scores.score,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class Layout:
    """Which domains are held out where.

    Args:
        held: Positions of the held-out domains, for each fold.
        sizes: Rows of every domain.
    """

    held: Sequence[np.ndarray]
    sizes: np.ndarray

    @property
    def judged(self) -> np.ndarray:
        """Positions of the domains that are held out at least once."""
        return np.unique(np.concatenate(list(self.held)))

    def gathered(self, parts: Sequence[Sequence[float]]) -> np.ndarray:
        """Return one value per judged domain from those of each fold; several of one domain become their mean."""
        total, count = np.zeros(len(self.sizes)), np.zeros(len(self.sizes))
        for held, values in zip(self.held, parts, strict=True):
            total[held] += values
            count[held] += 1
        return total[self.judged] / count[self.judged]


def stand(method: str, trials: Sequence[FoldTrial], store: Store, layout: Layout) -> Standing | str:
    """Return how a method stands, or the sentence with which one of its folds ended."""
    results = []
    for trial in trials:
        result = store.result(trial.key)
        if result is None:
            words = store.reason(trial.key) or "It was not run."
            return words if "needs" in words else f"It failed on {trial.dataset_label}: {words}"
        results.append(result)
    errors = layout.gathered([result["errors"] for result in results])
    low, high = mean_interval([errors])
    return Standing(
        method=method,
        scores=Scores.of(results[0]["metric"], errors, layout.sizes[layout.judged]),
        low=low,
        high=high,
        seconds=sum(_seconds(result) for result in results),
        results=results,
    )


def _seconds(result: dict[str, Any]) -> float:
    """Return all time that a trial took, tuning and choice included."""
    drawn = (result["tuning"] or {}).get("draws", [])
    chosen = (result["choice"] or {}).get("candidates", [])
    return result["train_seconds"] + result["eval_seconds"] + sum(each["seconds"] for each in [*drawn, *chosen])
