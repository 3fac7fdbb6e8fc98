"""The FiLM field: one θ whose hidden units are scaled and shifted by the descriptor."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField
from thetafield.predictors.perceptron import perceptron


class FilmField(ParameterField):
    """θ(z) = θ₀ with every hidden unit u = w·h + b replaced by (1 + γ_u(z)) u + β_u(z).

    Modulating a unit is scaling its row of weights and its bias by 1 + γ, and adding β to the bias: a field like any
    other, with nothing to change in the head.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        layers: (start of weight, end of weight, start of bias, end of bias) in θ, for each hidden layer in turn.
        hidden: Widths of the network that reads z, with ReLU after every layer.
    """

    kind = "film"

    def __init__(
        self, descriptor_dim: int, theta_dim: int, layers: Sequence[Sequence[int]], hidden: Sequence[int] = (32, 32)
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self._config = {
            "descriptor_dim": descriptor_dim,
            "theta_dim": theta_dim,
            "layers": [list(layer) for layer in layers],
            "hidden": list(hidden),
        }
        self.layers = [tuple(layer) for layer in layers]
        count = sum(end - start for _, _, start, end in self.layers)
        self.theta = nn.Parameter(torch.zeros(theta_dim))
        self.encoder = nn.Sequential(*perceptron([descriptor_dim, *hidden]), nn.ReLU())
        self.modulation = nn.Linear(hidden[-1], 2 * count)

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return dict(self._config)

    def thetas(self, z: Tensor) -> Tensor:
        """Return θ₀ with the rows of its hidden layers scaled and their biases shifted."""
        scale, shift = self.modulation(self.encoder(2 * z - 1)).chunk(2, dim=1)
        counts = [end - start for _, _, start, end in self.layers]
        theta = self.theta.expand(len(z), -1)
        parts, position = [], 0
        for layer, gamma, beta in zip(self.layers, scale.split(counts, 1), shift.split(counts, 1), strict=True):
            weight_start, weight_end, bias_start, bias_end = layer
            columns = (weight_end - weight_start) // gamma.shape[1]
            rows = (1 + gamma)[:, :, None].expand(-1, -1, columns).flatten(1)
            parts += [theta[:, position:weight_start], theta[:, weight_start:weight_end] * rows]
            parts += [theta[:, weight_end:bias_start], theta[:, bias_start:bias_end] * (1 + gamma) + beta]
            position = bias_end
        return torch.cat([*parts, theta[:, position:]], 1)
