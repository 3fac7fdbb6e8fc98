"""Terrain: some places are harder than others, for any model, and how hard they are changes smoothly with z."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.spatial.distance import pdist
from torch import Tensor

from thetafield.evenly import evenly
from thetafield.typing import Descriptors

WIDTHS = (0.15, 0.3, 0.6, 1.2)  # of hills, in median distances between two held-out domains
RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
PAYS = 0.9  # share of the squared error on a domain that was left out, below which a terrain is believed
RARE = 0.05  # errors beyond this quantile count as much as those at it: one place without errors decides nothing
FEWEST = 20  # places, below which the best of several fits is mostly luck
MOST = 400  # held-out domains that are enough


@dataclass(frozen=True)
class Terrain:
    """log h(z) = Σ_i w_i k(u, u_i), u = (z − centre) / spread, with z kept within what was seen.

    The kernel k is one of hills, exp(−½ |u − u_i|² / width²), or one of slopes and bends of each coordinate alone,
    Σ_c (u_c u_ic + (u_c² − 1)(u_ic² − 1)): the first finds regions, the second needs fewer domains.

    Args:
        low: Least of each scaled descriptor coordinate that was seen.
        high: Largest of each.
        centre: Mean of each.
        spread: Standard deviation of each.
        points: u of held-out domains.
        weights: w.
        width: Of the hills; None for slopes and bends.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    points: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    width: float | None = None

    @classmethod
    def fit(cls, z: Float[np.ndarray, "n d"], logs: Float[np.ndarray, " n"]) -> "Terrain | None":
        """Fit to the logarithms of held-out domains' errors; None where the others' tell one no better than their mean.

        Example:
            >>> z = np.random.default_rng(0).uniform(size=(40, 2))
            >>> Terrain.fit(z, 3 * z[:, 0]) is None, Terrain.fit(z, np.sin(100 * z[:, 0])) is None
            (False, True)
        """
        if not z.shape[1]:
            return None
        # Looks at one place count as one: left out alone, it would be told by its twin.
        z, place = np.unique(z, axis=0, return_inverse=True)
        logs = np.bincount(place.ravel(), logs) / np.bincount(place.ravel())
        if len(z) < FEWEST:
            return None
        enough = evenly(len(z), MOST)
        z, logs = z[enough], np.clip(logs[enough], *np.quantile(logs[enough], (RARE, 1 - RARE)))
        centre, spread = z.mean(0), np.maximum(z.std(0), 1e-9)
        unit, wanted, count = (z - centre) / spread, logs - logs.mean(), len(z)
        reach = float(np.median(pdist(unit)))
        found = []
        for width in (None, *(share * reach for share in WIDTHS if reach > 0)):
            kernel = _kernel(torch.from_numpy(unit), torch.from_numpy(unit), width).numpy()
            values, vectors = np.linalg.eigh(kernel)
            for ridge in RIDGES:
                weights = vectors @ (vectors.T @ wanted / (np.maximum(values, 0) + ridge))
                # What a domain adds to its own estimate, the mean's part included.
                own = (vectors**2 @ (np.maximum(values, 0) / (np.maximum(values, 0) + ridge))) + 1 / count
                missed = (wanted - kernel @ weights) / np.maximum(1 - own, 1e-6)
                found.append((float((missed**2).mean()), width, weights))
        least, width, weights = min(found, key=lambda each: each[0])
        alone = float(((wanted * count / (count - 1)) ** 2).mean())
        if not least < PAYS * alone:
            return None
        return cls(
            low=tuple(z.min(0).tolist()),
            high=tuple(z.max(0).tolist()),
            centre=tuple(centre.tolist()),
            spread=tuple(spread.tolist()),
            points=tuple(tuple(row) for row in unit.tolist()),
            weights=tuple(weights.tolist()),
            width=width,
        )

    def __call__(self, z: Descriptors) -> Float[Tensor, " b"]:
        """Return log h at scaled descriptors."""
        low, high, centre, spread, points, weights = (
            z.new_tensor(part, dtype=torch.double)
            for part in (self.low, self.high, self.centre, self.spread, self.points, self.weights)
        )
        unit = (z.double().clamp(low, high) - centre) / spread
        return _kernel(unit, points, self.width) @ weights


def _kernel(u: Float[Tensor, "b d"], v: Float[Tensor, "n d"], width: float | None) -> Float[Tensor, "b n"]:
    if width is None:
        return u @ v.T + (u**2 - 1) @ (v**2 - 1).T
    return torch.exp(-0.5 * (torch.cdist(u, v) / width) ** 2)
