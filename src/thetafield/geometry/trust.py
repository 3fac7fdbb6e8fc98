"""How far θ(z) may be believed at a descriptor."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

from thetafield.geometry.neighbours import Distinct, nearest
from thetafield.geometry.terrain import Terrain
from thetafield.typing import Anchors, Descriptors

RIDGE = 0.05  # of the signs' weights: held-out domains are few
HUGE = 1e9
TINY = 1e-30  # an error, in whatever unit, that is as good as none
FADE = 3.0  # reaches over which calibrated trust fades, where no held-out domain has told anything


@dataclass(frozen=True)
class Calibration:
    """Expected error from signs of doubt: log error = intercept + Σ_k w_k log(1 + sign_k / scale_k) + log h(z).

    All w_k ≥ 0, so it never falls where a sign grows, and it grows without end.

    Args:
        scales: Median of each sign over the held-out domains.
        weights: w.
        intercept: Of the logarithm.
        terrain: h, how hard a place is whatever the signs; None where that tells nothing.
    """

    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    terrain: Terrain | None = None

    @classmethod
    def fit(
        cls, signs: Float[np.ndarray, "n s"], errors: Float[np.ndarray, " n"], z: Float[np.ndarray, "n d"]
    ) -> "Calibration":
        """Fit to held-out domains by least squares; the mean of expected errors is that of the realised ones.

        Args:
            signs: Signs of doubt at each domain.
            errors: Its error.
            z: Its scaled descriptor.

        Example:
            >>> signs = np.linspace(0, 3, 20)[:, None]
            >>> found = Calibration.fit(signs, 1 + signs[:, 0], np.zeros((20, 0)))
            >>> round(float(found(torch.from_numpy(signs), torch.zeros(20, 0)).mean()), 2)
            2.5
        """
        signs = np.nan_to_num(signs, nan=HUGE, posinf=HUGE)  # what is not a number any more is beyond all doubt
        scales = np.maximum(np.median(signs, 0), 1e-9)
        logs = np.log1p(signs / scales)
        level = float(errors.mean()) or TINY
        # A domain without one error says that errors are small there, not how small.
        target = np.log(errors / level + 0.1)
        centred = logs - logs.mean(0)
        penalty = np.sqrt(RIDGE * len(signs)) * np.eye(signs.shape[1])
        weights = np.empty(0)
        if signs.shape[1]:  # without a column scipy's solver breaks its memory
            weights, _ = nnls(
                np.vstack([centred, penalty]), np.concatenate([target - target.mean(), np.zeros(len(penalty))])
            )
        terrain = Terrain.fit(z, target - logs @ weights)
        found = cls(tuple(scales.tolist()), tuple(weights.tolist()), 0.0, terrain)
        shape = found(torch.from_numpy(signs), torch.from_numpy(z))
        return replace(found, intercept=float(np.log(level / float(shape.mean()))))

    def __call__(self, signs: Float[Tensor, "b s"], z: Descriptors) -> Float[Tensor, " b"]:
        """Return the expected error at each scaled descriptor."""
        signs = signs.double().nan_to_num(torch.inf)  # what is not a number any more is beyond all doubt
        weights = signs.new_tensor(self.weights)
        logs = torch.log1p(signs / signs.new_tensor(self.scales))
        total = self.intercept + torch.where(weights > 0, weights * logs, 0).sum(1)
        return torch.exp(total if self.terrain is None else total + self.terrain(z.to(signs)))


@dataclass(frozen=True)
class Trust:
    """Trust in [0, 1]: 1 where a model errs as little as on the easiest training domains, 0 where a guess does as well.

    Calibrated on held-out training domains, it is (naive − expected) / (naive − attained) from the error expected
    there, and fades far from all training domains. Without a calibration it falls with the distance to the nearest
    training domain alone: exp(−½ (distance / reach)²).

    Args:
        anchors: Scaled training descriptors, shape (N, d).
        reach: Distance that one chart is known to bridge.
        attained: Error on the easiest training domains.
        naive: Error of the best answer that knows nothing of the inputs.
        blind: Expected error from what the field says of a descriptor.
        sighted: Expected error from what inputs of the domain show.
    """

    anchors: Tensor
    reach: float
    attained: float = 0.0
    naive: float = 1.0
    blind: Calibration | None = None
    sighted: Calibration | None = None

    @classmethod
    def fit(cls, anchors: Anchors) -> "Trust":
        """Take as reach the distance to the nearest neighbour that 90 % of the training domains stay within."""
        if len(anchors) < 2 or not anchors.shape[1]:
            return cls(anchors, 1.0)
        distinct = Distinct.of(anchors).points
        if len(distinct) < 2:
            return cls(anchors, 1.0)
        distance, _ = nearest(distinct, distinct, 2)
        return cls(anchors, max(float(distance[:, 1].quantile(0.9)), torch.finfo(anchors.dtype).eps))

    def calibrated(self, blind: Calibration, sighted: Calibration, attained: float, naive: float) -> "Trust":
        """Return a trust that knows what errors held-out domains had."""
        return replace(self, blind=blind, sighted=sighted, attained=attained, naive=naive)

    def __call__(self, z: Descriptors, blind: Tensor | None = None, sighted: Tensor | None = None) -> Tensor:
        """Return trust for each scaled descriptor, shape (b,).

        Args:
            z: Scaled descriptors.
            blind: Signs of doubt of the field there, shape (b, s); read by a calibrated trust.
            sighted: Signs that inputs of the domains show, shape (b, t); needs no blind ones.
        """
        if not self.anchors.shape[1]:
            return z.new_ones(len(z))
        distance = nearest(z, self.anchors.to(z))[0][:, 0]
        signs, calibration = (blind, self.blind) if sighted is None else (sighted, self.sighted)
        if calibration is None or signs is None:
            return torch.exp(-0.5 * (distance / self.reach) ** 2)
        kept = (self.naive - calibration(signs, z.to(signs.device))) / max(self.naive - self.attained, TINY)
        return kept.clamp(0, 1).to(z) * torch.exp(-0.5 * (distance / (FADE * self.reach)) ** 2)
