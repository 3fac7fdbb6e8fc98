"""Terrain: some places are harder than others, for any model, and how hard they are changes smoothly with z."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from thetafield.typing import Descriptors

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)  # per held-out domain
PAYS = 0.95  # share of the squared error on a domain that was left out, below which a terrain is believed


@dataclass(frozen=True)
class Terrain:
    """log h(z) = Σ_c (slope_c u_c + bend_c (u_c² − 1)), u = (z − centre) / spread, with z kept within what was seen.

    Args:
        low: Least of each scaled descriptor coordinate that was seen.
        high: Largest of each.
        centre: Mean of each.
        spread: Standard deviation of each.
        slopes: Of each coordinate.
        bends: Of each coordinate.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    slopes: tuple[float, ...]
    bends: tuple[float, ...]

    @classmethod
    def fit(cls, z: Float[np.ndarray, "n d"], logs: Float[np.ndarray, " n"]) -> "Terrain | None":
        """Fit to the logarithms of held-out domains' errors; None where the others' tell one no better than their mean.

        Example:
            >>> z = np.random.default_rng(0).uniform(size=(40, 2))
            >>> Terrain.fit(z, 3 * z[:, 0]).slopes[0] > 0.5
            True
            >>> Terrain.fit(z, np.sin(100 * z[:, 0])) is None
            True
        """
        if not z.shape[1] or len(z) < 3:
            return None
        centre, spread = z.mean(0), np.maximum(z.std(0), 1e-9)
        unit = (z - centre) / spread
        features = np.hstack([unit, unit**2 - 1])
        features = features - features.mean(0)
        wanted, count = logs - logs.mean(), len(z)
        found = []
        for ridge in RIDGES:
            inverse = np.linalg.inv(features.T @ features + ridge * count * np.eye(features.shape[1]))
            weights = inverse @ features.T @ wanted
            # What a domain adds to its own estimate, the mean's part included.
            own = ((features @ inverse) * features).sum(1) + 1 / count
            missed = (wanted - features @ weights) / (1 - own)
            found.append((float((missed**2).mean()), weights))
        least, weights = min(found, key=lambda each: each[0])
        alone = float(((wanted * count / (count - 1)) ** 2).mean())
        if not least < PAYS * alone:
            return None
        slopes, bends = np.split(weights, 2)
        parts = (z.min(0), z.max(0), centre, spread, slopes, bends)
        return cls(*(tuple(part.tolist()) for part in parts))

    def __call__(self, z: Descriptors) -> Float[Tensor, " b"]:
        """Return log h at scaled descriptors."""
        low, high, centre, spread, slopes, bends = (
            z.new_tensor(part, dtype=torch.double)
            for part in (self.low, self.high, self.centre, self.spread, self.slopes, self.bends)
        )
        unit = (z.double().clamp(low, high) - centre) / spread
        return (slopes * unit + bends * (unit**2 - 1)).sum(1)
