"""The modulated field: one θ whose first bias follows the descriptor."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField
from thetafield.fields.knots import knots_between, piecewise
from thetafield.predictors.perceptron import perceptron


class ModulatedField(ParameterField):
    """θ(z) = θ₀ with the head's first bias shifted by W ψ(z).

    Concatenating ψ(z) to the head's input is exactly this: [A W]·[h; ψ] + b = A h + (b + W ψ).

    Args:
        descriptor_dim: d.
        theta_dim: D.
        first_bias: Where the first bias begins and ends in θ.
        hidden: Widths of ψ, a perceptron with ReLU after every layer; none for the identity.
        knots: Number of intervals in which ψ is told where each coordinate lies; 0 tells it the coordinate alone.
    """

    kind = "modulated"
    edges: Tensor | None

    def __init__(
        self,
        descriptor_dim: int,
        theta_dim: int,
        first_bias: Sequence[int],
        hidden: Sequence[int] = (32, 32),
        knots: int = 0,
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self.first_bias = tuple(first_bias)
        self.hidden, self.knots = tuple(hidden), knots
        self.theta = nn.Parameter(torch.zeros(theta_dim))
        widths = [descriptor_dim * max(1, knots), *self.hidden]
        self.encoder = nn.Sequential(*perceptron(widths), nn.ReLU()) if self.hidden else nn.Sequential()
        self.shift = nn.Linear(widths[-1], self.first_bias[1] - self.first_bias[0], bias=False)
        self.register_buffer("mean", torch.zeros(descriptor_dim))
        self.register_buffer("std", torch.ones(descriptor_dim))
        edges = torch.linspace(0, 1, knots + 1).repeat(descriptor_dim, 1) if knots else None
        self.register_buffer("edges", edges)

    @torch.no_grad()
    def look_at(self, z: Tensor) -> None:
        """Take location, scale and knots from the training domains."""
        self.mean.copy_(z.mean(0))
        if len(z) > 1:
            self.std.copy_(z.std(0, correction=0))
        if self.edges is not None:
            self.edges.copy_(knots_between(z, self.knots))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {
            "descriptor_dim": self.descriptor_dim,
            "theta_dim": self.theta_dim,
            "first_bias": list(self.first_bias),
            "hidden": list(self.hidden),
            "knots": self.knots,
        }

    def shifts(self, z: Tensor) -> Tensor:
        """Return W ψ(z), by which the first bias is shifted."""
        read = (z - self.mean) / self.std if self.edges is None else piecewise(z, self.edges)
        return self.shift(self.encoder(read))

    def thetas(self, z: Tensor) -> Tensor:
        """Return θ₀ plus the shift of its first bias."""
        start, end = self.first_bias
        return self.theta + nn.functional.pad(self.shifts(z), (start, self.theta_dim - end))
