"""The hypernetwork field: a perceptron from descriptor to parameters."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField
from thetafield.geometry.coder import WIDTHS
from thetafield.predictors.perceptron import perceptron


class HypernetField(ParameterField):
    """θ(z) = θ₀ + f_d(e(z)): an encoder of the descriptor, and the decoder that transported fields have.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        latent_dim: m.
        hidden: Widths of the encoder.
        widths: Hidden widths of the coder, from its wide end, as in a transported field.
    """

    kind = "hypernet"

    def __init__(
        self,
        descriptor_dim: int,
        theta_dim: int,
        latent_dim: int = 32,
        hidden: Sequence[int] = (128, 128),
        widths: Sequence[int] = WIDTHS,
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self._config = {
            "descriptor_dim": descriptor_dim,
            "theta_dim": theta_dim,
            "latent_dim": latent_dim,
            "hidden": list(hidden),
            "widths": list(widths),
        }
        self.theta = nn.Parameter(torch.zeros(theta_dim))
        self.encoder = perceptron([descriptor_dim, *hidden, latent_dim])
        self.decoder = perceptron([latent_dim, *reversed(widths), theta_dim])

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return dict(self._config)

    def thetas(self, z: Tensor) -> Tensor:
        """Return θ₀ plus the decoded latent of each descriptor, which lies in [0, 1] over the training domains."""
        return self.theta + self.decoder(self.encoder(2 * z - 1))
