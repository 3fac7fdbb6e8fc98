"""One fold of a population as a task that a trial can run on: it sees the kept domains, and is scored on the others."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from torch import Tensor

from thetafield.compare.population import Population
from thetafield.data.domains import DomainSet
from thetafield.data.folds import REVISIONS, domain_folds, most_folds
from thetafield.data.thinning import thinned
from thetafield.datasets.base import Dataset
from thetafield.streams import torch_stream

MOST = 5  # outer folds
FEWEST_ROWS = 100  # of a domain that are always taken


@dataclass(frozen=True)
class Fold:
    """Some domains of a population held out, or none.

    A domain in the future of a "time" fold is in neither part: what comes after the held-out block is unknown then.

    Args:
        population: All domains.
        kind: Which domains are held out: "random", "blocked", "edge" or "time".
        count: Number of folds.
        number: Which of them; None trains on all domains, and selects by one fold of the kind.
        every: Of each domain's samples, one in so many is taken, but a hundred if it has them.
    """

    population: Population
    kind: str
    count: int
    number: int | None
    every: int = 1

    @property
    def name(self) -> str:
        """How results call the data."""
        return self.population.name

    @property
    def options(self) -> dict[str, Any]:
        """All that determines the domains besides the seed."""
        revision = [REVISIONS[self.kind]] if self.kind in REVISIONS else []
        folds = [self.kind, self.count, self.number, *revision]
        return {"population": self.population.options, "folds": folds, "every": self.every}

    def build(self, seed: int) -> Dataset:
        """Return the domains of this fold; the last ones are remembered, since methods follow each other on a fold."""
        return _built(self, seed)


@lru_cache(maxsize=2)
def _built(fold: Fold, seed: int) -> Dataset:
    data = _divided(fold, seed)
    if fold.every == 1:
        return data
    stream = torch_stream(seed, "rows", fold.number or 0)
    train = thinned(data.train, fold.every, FEWEST_ROWS, stream)
    test = {name: thinned(each, fold.every, FEWEST_ROWS, stream) for name, each in data.test.items()}
    return replace(data, train=train, test=test)


def _divided(fold: Fold, seed: int) -> Dataset:
    if fold.number is None:
        return replace(fold.population.undivided(), holdout=fold.kind)  # by which selection goes
    whole = _whole(fold.population)
    kept, held = domain_folds(whole, fold.count, seed, fold.kind)[fold.number]
    data = fold.population.divided(kept, fold.kind)
    # Of the domains that are not kept, the held-out ones, at their positions.
    rest = np.setdiff1d(np.arange(len(whole)), kept)
    if len(rest) == len(held):
        return data
    test = {fold.kind: data.test[fold.kind].select(np.searchsorted(rest, held))}
    return replace(data, test=test)


@lru_cache(maxsize=1)
def _whole(population: Population) -> DomainSet:
    return population.whole()


def fold_count(z: Tensor, kind: str) -> int:
    """Return how many outer folds there are: five, or as many as the kind and the domains allow."""
    return max(1, min(MOST, most_folds(z, kind)))
