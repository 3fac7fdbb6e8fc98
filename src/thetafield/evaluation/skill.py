"""Skill of a regression in every domain, as hydrology reports it: Nash-Sutcliffe and Kling-Gupta efficiency."""

from dataclasses import dataclass

import numpy as np
import torch

from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.evaluation.scores import answers
from thetafield.fields.model import Model


@dataclass(frozen=True)
class Skill:
    """Efficiencies of the first target; 1 is perfect, and 0 of `nse` is as good as the domain's own mean.

    Args:
        nse: 1 − Σ(ŷ − y)² / Σ(y − ȳ)², shape (N,).
        kge: 1 − √((r − 1)² + (σ̂/σ − 1)² + (μ̂/μ − 1)²), shape (N,).
    """

    nse: np.ndarray
    kge: np.ndarray

    def record(self) -> dict[str, float | None]:
        """Return the medians over domains; a domain whose target never changes has no skill to speak of."""
        return {"nse": _median(self.nse), "kge": _median(self.kge)}


def skill(model: Model, domains: DomainSet) -> Skill:
    """Measure both efficiencies on raw domains with a regression target."""
    if domains.classification:
        raise DataError("Skill is defined for numbers, but the target of these domains is a class.")
    nse, kge = [], []
    for batch, outputs in answers(model, domains):
        weight, y, guess = (part.double() for part in (batch.weight, batch.y[..., 0], outputs[..., 0]))
        weight = weight / weight.sum(1, keepdim=True)
        still = y.amax(1) == y.amin(1)  # where rows are filled up, it is by one of the domain's own samples

        def mean(values: torch.Tensor, weight: torch.Tensor = weight) -> torch.Tensor:
            return (values * weight).sum(1)

        centre, guessed = mean(y), mean(guess)
        off, guess_off = y - centre[:, None], guess - guessed[:, None]
        spread, guess_spread = mean(off**2).sqrt(), mean(guess_off**2).sqrt()
        nse.append((1 - mean((guess - y) ** 2) / spread**2).masked_fill(still, torch.nan))
        correlation = mean(off * guess_off) / (spread * guess_spread)
        parts = (correlation - 1) ** 2 + (guess_spread / spread - 1) ** 2 + (guessed / centre - 1) ** 2
        kge.append((1 - parts.sqrt()).masked_fill(still, torch.nan))
    arrays = [torch.cat(part).cpu().numpy() for part in (nse, kge)]
    return Skill(*(np.where(np.isfinite(part), part, np.nan) for part in arrays))


def _median(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None
