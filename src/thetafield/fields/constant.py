"""The constant field: one θ for every domain."""

from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField


class ConstantField(ParameterField):
    """θ(z) = θ₀.

    Example:
        >>> field = ConstantField(descriptor_dim=2, theta_dim=3)
        >>> field(torch.zeros(5, 4, 2)).shape
        torch.Size([5, 4, 3])
    """

    kind = "constant"

    def __init__(self, descriptor_dim: int, theta_dim: int) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self.theta = nn.Parameter(torch.zeros(theta_dim))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {"descriptor_dim": self.descriptor_dim, "theta_dim": self.theta_dim}

    def thetas(self, z: Tensor) -> Tensor:
        """Return θ₀, repeated."""
        return self.theta.expand(len(z), -1)
