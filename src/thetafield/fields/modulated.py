"""The modulated field: one θ whose first bias follows the descriptor."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField
from thetafield.predictors.perceptron import perceptron


class ModulatedField(ParameterField):
    """θ(z) = θ₀ with the head's first bias shifted by W ψ(z).

    Concatenating ψ(z) to the head's input is exactly this: [A W]·[h; ψ] + b = A h + (b + W ψ).

    Args:
        descriptor_dim: d.
        theta_dim: D.
        first_bias: Where the first bias begins and ends in θ.
        hidden: Widths of ψ, a perceptron with ReLU after every layer.
    """

    kind = "modulated"

    def __init__(
        self, descriptor_dim: int, theta_dim: int, first_bias: Sequence[int], hidden: Sequence[int] = (32, 32)
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self.first_bias = tuple(first_bias)
        self.hidden = tuple(hidden)
        self.theta = nn.Parameter(torch.zeros(theta_dim))
        widths = [descriptor_dim, *self.hidden]
        self.encoder = nn.Sequential(*perceptron(widths), nn.ReLU())
        self.shift = nn.Linear(widths[-1], self.first_bias[1] - self.first_bias[0], bias=False)
        self.register_buffer("mean", torch.zeros(descriptor_dim))
        self.register_buffer("std", torch.ones(descriptor_dim))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {
            "descriptor_dim": self.descriptor_dim,
            "theta_dim": self.theta_dim,
            "first_bias": list(self.first_bias),
            "hidden": list(self.hidden),
        }

    def thetas(self, z: Tensor) -> Tensor:
        """Return θ₀ plus the shift of its first bias."""
        shift = self.shift(self.encoder((z - self.mean) / self.std))
        start, end = self.first_bias
        return self.theta + nn.functional.pad(shift, (start, self.theta_dim - end))
