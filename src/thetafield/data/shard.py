"""Domains whose samples lie in parts with several ranks."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from thetafield.data.batch import DomainBatch
from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.ranks import ALONE, Ranks


@dataclass(frozen=True, eq=False)
class Shard(DomainSet):
    """All domains to training, though only the samples of this rank's own ones are here.

    Descriptors and sizes are here in full, so that draws are those of the whole set. Samples on the disk are in reach
    of all ranks and stay there whole.

    Args:
        start: Number of the first sample that is here.
        ranks: Who holds the others.
    """

    start: int = 0
    ranks: Ranks = ALONE

    @classmethod
    def of(cls, domains: DomainSet, ranks: Ranks) -> DomainSet:
        """Return this rank's shard; all of it where there is one rank."""
        if not ranks.several:
            return domains
        if len(domains) < ranks.count:
            raise DataError(f"There are {ranks.count} ranks for {len(domains)} training domains: start fewer ranks.")
        parts = {field.name: getattr(domains, field.name) for field in fields(domains)} | {"ranks": ranks}
        if not domains.on_disk:
            own = ranks.part(len(domains))
            start, stop = int(domains.offsets[own.start]), int(domains.offsets[own.stop])
            # Copies, so that the samples of others can be let go.
            parts |= {"x": domains.x[start:stop].clone(), "y": domains.y[start:stop].clone(), "start": start}
        return cls(**parts)

    def take(self, rows: Tensor, weight: Tensor, index: Tensor) -> DomainBatch:
        """Return the samples at `rows`, from whoever holds them; all ranks ask at once, for as many."""
        if self.on_disk:
            return super().take(rows, weight, index)
        x, y = (self.ranks.fetched(own, self.start, rows) for own in (self.x, self.y))
        return DomainBatch(x, y, weight, index)

    def draw_own(self, num_samples: int) -> DomainBatch:
        """Return this rank's part of a draw from every domain, for which nothing has to be fetched."""
        own, index = self.ranks.part(len(self)), torch.arange(len(self), device=self.offsets.device)
        rows, weight = self.drawn_rows(index, num_samples)
        return super().take(rows[own] - self.start, weight[own], index[own])
