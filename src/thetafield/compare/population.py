"""All domains there are, which folds divide: a person's own table, or domains that are in memory already."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.data.stored import open_domains, store_domains
from thetafield.datasets.base import Dataset


@runtime_checkable
class Population(Protocol):
    """Domains that can be divided into those to train on and those to be unseen; it travels to other processes.

    :class:`~thetafield.datasets.own_table.OwnTable` is one: it learns its encoding from the kept rows alone.
    """

    @property
    def name(self) -> str:
        """How results call it."""

    @property
    def options(self) -> dict[str, Any]:
        """All that determines it, in plain values."""

    def whole(self) -> DomainSet:
        """Return all domains."""

    def divided(self, kept: np.ndarray, kind: str) -> Dataset:
        """Return the domains at positions `kept` for training, and the others for the test, in their order."""

    def undivided(self) -> Dataset:
        """Return all domains for training; the test domains are the same."""


@dataclass(frozen=True)
class StoredPopulation:
    """Domains in a folder on the disk, where every process finds them.

    Args:
        path: Folder written by :func:`thetafield.data.stored.store_domains`.
        name: How results call it.
        predictor: Registry name of the predictor that suits the inputs.
        predictor_options: Its options, as pairs.
        ordered: Whether the only descriptor is an order such as time.
        standardise: Whether inputs are still raw columns.
    """

    path: str
    name: str
    predictor: str = "mlp"
    predictor_options: tuple[tuple[str, Any], ...] = ()
    ordered: bool = False
    standardise: bool = True

    @classmethod
    def of(
        cls,
        domains: DomainSet,
        folder: Path,
        name: str,
        predictor: str = "mlp",
        predictor_options: Mapping[str, Any] | None = None,
        ordered: bool = False,
        standardise: bool = True,
    ) -> "StoredPopulation":
        """Write domains into a folder, if they are not there yet."""
        if not (folder / "domains.json").exists():
            store_domains([domains], folder)
        # Tuples, since a population is remembered by its value.
        given = {key: tuple(v) if isinstance(v, list) else v for key, v in (predictor_options or {}).items()}
        pairs = tuple(sorted(given.items()))
        return cls(str(folder.absolute()), name, predictor, pairs, ordered, standardise)

    @property
    def options(self) -> dict[str, Any]:
        """What determines it beside the domains themselves, whose folder may be moved."""
        return {
            "predictor": self.predictor,
            "predictor_options": dict(self.predictor_options),
            "ordered": self.ordered,
            "standardise": self.standardise,
        }

    def whole(self) -> DomainSet:
        """Return all domains, in memory."""
        stored = open_domains(Path(self.path))
        return stored.select(np.arange(len(stored)))

    def divided(self, kept: np.ndarray, kind: str) -> Dataset:
        """Return the domains at positions `kept` for training, and the others for the test."""
        whole = self.whole()
        held = np.setdiff1d(np.arange(len(whole)), kept)
        return self._dataset(whole.select(kept), {kind: whole.select(held)}, kind)

    def undivided(self) -> Dataset:
        """Return all domains for training; the test domains are the same."""
        whole = self.whole()
        return self._dataset(whole, {"seen": whole}, None)

    def _dataset(self, train: DomainSet, test: Mapping[str, DomainSet], holdout: str | None) -> Dataset:
        return Dataset(
            name=self.name,
            train=train,
            test=test,
            predictor=self.predictor,
            predictor_options=dict(self.predictor_options),
            ordered=self.ordered,
            standardise=self.standardise,
            holdout=holdout,
        )
