"""A person's own table as a dataset: some of its domains are held out and everything is fitted on the others."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.data.descriptors import check_descriptors
from thetafield.data.domains import DomainSet
from thetafield.data.encoder import check_columns
from thetafield.data.folds import domain_folds
from thetafield.data.table import read_table_file
from thetafield.datasets.base import Dataset


@dataclass(frozen=True)
class OwnTable:
    """A file with a table, and what its columns are.

    Args:
        path: CSV, Parquet, Arrow or Feather.
        target: Column to predict.
        domain: Column that says which domain a row belongs to.
        descriptors: Columns that describe a domain.
        features: Input columns; all remaining ones where it is None.
        places: File of a second table with one row per domain that holds the descriptors.
        classification: Whether the target holds labels; inferred where it is None.
        holdout: Which domains are held out for the last number: "random", "blocked", "edge" or "time"; None trains on
            all of them, and the last number is that of the domains trained on.
    """

    path: str
    target: str
    domain: str | None = None
    descriptors: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    places: str | None = None
    classification: bool | None = None
    holdout: str | None = "random"

    @property
    def name(self) -> str:
        """How results call it."""
        return Path(self.path).name

    @property
    def options(self) -> dict[str, Any]:
        """All that determines the domains besides the seed."""
        return asdict(self)

    def build(self, seed: int) -> Dataset:
        """Read the table and hold a quarter of its domains out; categories, medians and scales are the others'."""
        if self.holdout is None:
            return self.undivided()
        [(kept, _)] = domain_folds(self.whole(), 1, seed, self.holdout)
        return self.divided(kept, self.holdout)

    def whole(self) -> DomainSet:
        """Return all domains, encoded by all rows."""
        return _read(self)[1]

    def undivided(self) -> Dataset:
        """Return all domains for training; the test domains are the same."""
        train = self.whole()
        return self._dataset(train, {"seen": train}, None)

    def divided(self, kept: np.ndarray, kind: str) -> Dataset:
        """Return the domains at positions `kept` for training and all others for the test, called `kind`."""
        table, whole = _read(self)
        # Encoded anew from the rows of the kept domains alone: what the whole was encoded by has seen the others.
        rows, roles = _rows_of(whole, table, kept), _roles(self)
        seen = table.filter(rows)
        assert whole.encoder is not None
        # A feature that was measured at other domains only tells nothing here.
        named = [column.name for column in whole.encoder.features]
        roles["features"] = [name for name in named if not np.all(seen[name].is_null(nan_is_null=True))]
        train = DomainSet.from_frame(seen, **roles, classification=whole.classification, classes=whole.classes)
        test = DomainSet.from_frame(table.filter(~rows), like=train, places=roles["places"])
        return self._dataset(train, {kind: test}, kind)

    def _dataset(self, train: DomainSet, test: dict[str, DomainSet], holdout: str | None) -> Dataset:
        return Dataset(
            name=self.name,
            train=train,
            test=test,
            ordered=train.z.shape[1] == 1,  # one number is an order, if a method asks for one
            standardise=True,
            holdout=holdout,
        )


def _roles(own: OwnTable) -> dict[str, Any]:
    return {
        "target": own.target,
        "domain": own.domain,
        "descriptors": list(own.descriptors),
        "features": None if own.features is None else list(own.features),
        "places": None if own.places is None else read_table_file(Path(own.places)),
    }


def _read(own: OwnTable) -> tuple[Any, DomainSet]:
    """Return the table and all of its domains."""
    table = read_table_file(Path(own.path))
    whole = DomainSet.from_frame(table, **_roles(own), classification=own.classification)
    check_descriptors(whole)
    return table, whole


def _rows_of(whole: DomainSet, table: Any, domains: np.ndarray) -> np.ndarray:
    """Return which rows of a table belong to some of its domains."""
    encoder = whole.encoder
    assert encoder is not None
    if encoder.domain is not None:
        check_columns(table, [encoder.domain])
        return np.isin(table[encoder.domain].to_numpy(), whole.ids[domains])
    keys = np.unique(encoder.descriptor_rows(table), axis=0, return_inverse=True)[1].ravel()
    return np.isin(keys, domains)
