"""The domains behind stored errors, made again from the dataset, its options and the seed."""

import json
import math
from dataclasses import dataclass, field

import numpy as np

from thetafield.bench.trial import domain_names
from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Dataset, Registered
from thetafield.errors import DataError, ThetafieldError
from thetafield.geometry.neighbours import nearest
from thetafield.report.store.items import Item, Trial

PLACES = ("longitude", "latitude")


@dataclass
class Rebuilt:
    """Datasets by name, options and seed, each made once.

    Args:
        made: What was made so far, or why it could not be.
    """

    made: dict[str, Dataset | str] = field(default_factory=dict)

    def dataset(self, item: Item) -> Dataset:
        """Return the dataset that an item was trained on.

        Raises:
            DataError: Its files are not here, or it does not exist any more.
        """
        key = json.dumps([item.dataset, dict(item.spec["dataset_options"]), item.spec["seed"]], sort_keys=True)
        if key not in self.made:
            try:
                self.made[key] = Registered(item.dataset, item.spec["dataset_options"]).build(item.spec["seed"])
            except ThetafieldError as error:
                self.made[key] = str(error)
        found = self.made[key]
        if isinstance(found, str):
            raise DataError(found)
        return found

    def unseen(self, trial: Trial) -> DomainSet:
        """Return the test domains in the order of a trial's errors.

        Raises:
            DataError: They are not here, or not those that the trial was scored on.
        """
        self.check(trial)
        return DomainSet.concatenate(list(self.dataset(trial).test.values()))

    def check(self, trial: Trial) -> None:
        """Raise a sentence where the test domains are not those that a trial was scored on."""
        here, then = domain_names(self.dataset(trial).test), trial.result.get("domains")
        stored = len(trial.result["per_domain"])
        if len(here) != stored:
            raise DataError(f"{trial.dataset} has {len(here)} test domains here, but {stored} when the trial was run.")
        if then is not None and list(then) != here:
            raise DataError(f"{trial.dataset} has other test domains here than when the trial was run.")

    def distances(self, trial: Trial) -> np.ndarray:
        """Return how far each unseen domain is from the nearest training domain, shape (N,).

        Coordinates are scaled to the range of the training domains, and distances divided by √d, so that 1 is from one
        end of everything to the other.
        """
        train, unseen = self.dataset(trial).train.z.double(), self.unseen(trial).z.double()
        low, high = train.amin(0), train.amax(0)
        span = (high - low).where(high > low, train.new_ones(()))
        distance, _ = nearest(unseen / span, train / span)
        return (distance[:, 0] / math.sqrt(max(1, len(span)))).numpy()


def coordinates(dataset: Dataset, relevance: dict[str, float]) -> tuple[str, ...]:
    """Return the one or two descriptors that a map is drawn over: the place on earth, or what weighs most."""
    names = dataset.train.descriptors
    if set(PLACES) <= set(names):
        return PLACES
    return tuple(sorted(names, key=lambda name: -relevance.get(name, 0.0))[:2])
