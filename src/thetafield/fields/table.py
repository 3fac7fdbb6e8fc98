"""The table field: the parameters of the nearest training domain."""

from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField
from thetafield.geometry.neighbours import nearest


class TableField(ParameterField):
    """θ(z) = θ_i with z_i the nearest training descriptor.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        num_anchors: N.
    """

    kind = "table"
    anchors: Tensor

    def __init__(self, descriptor_dim: int, theta_dim: int, num_anchors: int) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self.theta = nn.Parameter(torch.zeros(num_anchors, theta_dim))
        self.register_buffer("anchors", torch.zeros(num_anchors, descriptor_dim))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {
            "descriptor_dim": self.descriptor_dim,
            "theta_dim": self.theta_dim,
            "num_anchors": len(self.anchors),
        }

    def thetas(self, z: Tensor) -> Tensor:
        """Return the rows of the nearest anchors."""
        _, index = nearest(z, self.anchors)
        return self.theta[index[:, 0]]
