"""The descriptor gate (Eq. 7 of the paper)."""

import torch
from torch import nn

from thetafield.typing import Descriptors


class Gate(nn.Module):
    """m(z) = sigmoid(W z) ⊙ w: how much each descriptor coordinate counts at the source z.

    Args:
        descriptor_dim: d.
    """

    def __init__(self, descriptor_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(descriptor_dim, descriptor_dim, bias=False)
        self.weight = nn.Parameter(torch.ones(descriptor_dim))

    def forward(self, z: Descriptors) -> Descriptors:
        """Return m(z), applied to the source and to every target of its chart."""
        return torch.sigmoid(self.linear(z)) * self.weight
