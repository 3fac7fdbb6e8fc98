"""The coder between parameters θ and latents e."""

from torch import nn

from thetafield.predictors.perceptron import perceptron
from thetafield.typing import Latents, Thetas

WIDTHS = (1024, 512, 128)


class Coder(nn.Module):
    """e = f_e(θ) and θ = f_d(e) by mirrored four-layer perceptrons, D-1024-512-128-m in the paper.

    Args:
        theta_dim: D.
        latent_dim: m.
        widths: Hidden widths of the encoder; the decoder mirrors them.
    """

    def __init__(self, theta_dim: int, latent_dim: int, widths: tuple[int, ...] = WIDTHS) -> None:
        super().__init__()
        self.encoder = perceptron((theta_dim, *widths, latent_dim))
        self.decoder = perceptron((latent_dim, *reversed(widths), theta_dim))

    def encode(self, theta: Thetas) -> Latents:
        """Return f_e(θ)."""
        return self.encoder(theta)

    def decode(self, latent: Latents) -> Thetas:
        """Return f_d(e)."""
        return self.decoder(latent)
