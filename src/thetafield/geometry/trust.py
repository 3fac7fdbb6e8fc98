"""How far θ(z) may be believed at a descriptor."""

from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.geometry.neighbours import Distinct, nearest
from thetafield.typing import Anchors, Descriptors


@dataclass(frozen=True)
class Trust:
    """Trust in [0, 1] that falls with the distance to the nearest chart: exp(−½ (distance / reach)²).

    Args:
        anchors: Scaled training descriptors, shape (N, d).
        reach: Distance that one chart is known to bridge.
    """

    anchors: Tensor
    reach: float

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

    def __call__(self, z: Descriptors) -> Tensor:
        """Return trust for each scaled descriptor, shape (b,)."""
        if not self.anchors.shape[1]:
            return z.new_ones(len(z))
        distance, _ = nearest(z, self.anchors.to(z))
        return torch.exp(-0.5 * (distance[:, 0] / self.reach) ** 2)
