"""The coder between parameters θ and latents e."""

from itertools import pairwise

from torch import nn

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
        self.encoder = _perceptron((theta_dim, *widths, latent_dim))
        self.decoder = _perceptron((latent_dim, *reversed(widths), theta_dim))

    def encode(self, theta: Thetas) -> Latents:
        """Return f_e(θ)."""
        return self.encoder(theta)

    def decode(self, latent: Latents) -> Thetas:
        """Return f_d(e)."""
        return self.decoder(latent)


def _perceptron(widths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
