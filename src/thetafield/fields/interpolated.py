"""The interpolated field: a weighted mean of the parameters of the nearest training domains."""

from typing import Any

import torch
from torch import Tensor

from thetafield.fields.table import TableField
from thetafield.geometry.neighbours import nearest


class InterpolatedField(TableField):
    """θ(z) = Σ_i w_i θ_i over the k nearest training descriptors, w_i ∝ 1 / ‖z − z_i‖^p.

    At a training descriptor it is that domain's θ_i.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        num_anchors: N.
        neighbours: k.
        power: p.
    """

    kind = "interpolated"

    def __init__(
        self, descriptor_dim: int, theta_dim: int, num_anchors: int, neighbours: int = 5, power: float = 1.0
    ) -> None:
        super().__init__(descriptor_dim, theta_dim, num_anchors)
        self.neighbours, self.power = min(neighbours, num_anchors), power

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return super().config | {"neighbours": self.neighbours, "power": self.power}

    def thetas(self, z: Tensor) -> Tensor:
        """Return the weighted rows of the nearest anchors."""
        distance, index = nearest(z, self.anchors, self.neighbours)
        # Relative to the nearest one, so that a distance of zero gives weight one and all others none.
        closest = distance[:, :1]
        tiny = torch.finfo(z.dtype).tiny
        weight = ((closest + tiny) / (distance + tiny)) ** self.power
        weight = weight / weight.sum(1, keepdim=True)
        return torch.einsum("bk,bkD->bD", weight, self.theta[index.reshape(len(z), -1)])
