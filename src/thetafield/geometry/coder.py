"""The coder between parameters θ and latents e."""

from abc import ABC, abstractmethod

import torch
from torch import nn

from thetafield.errors import OptionError, closest
from thetafield.predictors.perceptron import perceptron
from thetafield.typing import Latents, Theta, Thetas

WIDTHS = (1024, 512, 128)


class Coder(nn.Module, ABC):
    """e = f_e(θ) and θ = f_d(e)."""

    @abstractmethod
    def encode(self, theta: Thetas) -> Latents:
        """Return f_e(θ)."""

    @abstractmethod
    def decode(self, latent: Latents) -> Thetas:
        """Return f_d(e)."""

    def start_at(self, theta: Theta) -> None:
        """Learn what the parameters of all domains are at the start, if that helps."""


class PerceptronCoder(Coder):
    """Mirrored four-layer perceptrons, D-1024-512-128-m, as in the paper.

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


class LeanCoder(Coder):
    """θ = θ₀ + B s(e), and e from A (θ − θ₀): a learned linear basis, with small perceptrons between it and the latent.

    The paper's first and last layer hold 1,024 weights for every parameter of the head; here there are twice the rank.
    N domains span at most N − 1 directions, so a basis of that rank loses nothing that the training domains say; and
    θ₀, where all domains start, need not be learned.

    Args:
        theta_dim: D.
        latent_dim: m.
        rank: Number of directions.
        width: Width of the perceptrons' one hidden layer.
    """

    centre: Theta

    def __init__(self, theta_dim: int, latent_dim: int, rank: int = 64, width: int = 128) -> None:
        super().__init__()
        self.read = nn.Linear(theta_dim, rank, bias=False)
        self.encoder = perceptron((rank, width, latent_dim))
        self.decoder = perceptron((latent_dim, width, rank))
        self.basis = nn.Linear(rank, theta_dim)
        self.register_buffer("centre", torch.zeros(theta_dim))

    def encode(self, theta: Thetas) -> Latents:
        """Return f_e(θ)."""
        return self.encoder(self.read(theta - self.centre))

    def decode(self, latent: Latents) -> Thetas:
        """Return f_d(e)."""
        return self.basis(self.decoder(latent))

    @torch.no_grad()
    def start_at(self, theta: Theta) -> None:
        """Centre both ways at the common start."""
        self.centre.copy_(theta)
        self.basis.bias.copy_(theta)


def make_coder(kind: str, theta_dim: int, latent_dim: int, widths: tuple[int, ...], rank: int) -> Coder:
    """Return the coder called "perceptron" or "lean"."""
    kinds = {
        "perceptron": lambda: PerceptronCoder(theta_dim, latent_dim, widths),
        "lean": lambda: LeanCoder(theta_dim, latent_dim, rank),
    }
    if kind not in kinds:
        raise OptionError(f"There is no coder {kind!r}; {closest(kind, kinds)}")
    return kinds[kind]()
