"""Generator fields V¹(z), …, Vʳ(z): the Lie algebra elements that move latents along the descriptor space."""

import torch
from torch import nn

from thetafield.errors import OptionError, closest
from thetafield.typing import Coefficients, Descriptors, Generators, Targets


class GeneratorField(nn.Module):
    """f_v(z): one network that emits all r generators at the source descriptor (Eq. 6 of the paper).

    Args:
        descriptor_dim: d.
        latent_dim: m.
        num_generators: r.
        hidden: Width of the hidden layer.
    """

    def __init__(self, descriptor_dim: int, latent_dim: int, num_generators: int, hidden: int = 128) -> None:
        super().__init__()
        self.shape = (num_generators, latent_dim, latent_dim)
        self.net = nn.Sequential(
            nn.Linear(descriptor_dim, hidden), nn.ReLU(), nn.Linear(hidden, num_generators * latent_dim**2)
        )

    def forward(self, z: Descriptors) -> Generators:
        """Return V¹(z) … Vʳ(z)."""
        return self.net(z).unflatten(-1, self.shape)


class ConstantGenerators(nn.Module):
    """The same generators everywhere: exp then composes exactly along each coordinate."""

    def __init__(self, latent_dim: int, num_generators: int) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(num_generators, latent_dim, latent_dim) / latent_dim)

    def forward(self, z: Descriptors) -> Generators:
        """Return the matrices, repeated for each source."""
        return self.matrices.expand(len(z), -1, -1, -1)


class CommutingGenerators(nn.Module):
    """Constant generators that commute: without a gate, identity, associativity and inverse hold by construction.

    Each is block diagonal with 2 × 2 blocks [[a, −b], [b, a]], a scaling and a rotation: the real normal form of
    commuting normal matrices. The change of basis is left to the coder.

    Args:
        latent_dim: m, an even number.
        num_generators: r.
    """

    def __init__(self, latent_dim: int, num_generators: int) -> None:
        super().__init__()
        if latent_dim % 2:
            raise OptionError(f"Commuting generators need an even latent dimension, but got {latent_dim}.")
        self.blocks = nn.Parameter(torch.randn(num_generators, latent_dim // 2, 2) * 0.1)

    def forward(self, z: Descriptors) -> Generators:
        """Return the block-diagonal matrices, repeated for each source."""
        scaling, rotation = self.blocks.unbind(-1)
        pairs = torch.stack([torch.stack([scaling, -rotation], -1), torch.stack([rotation, scaling], -1)], -2)
        num_generators, num_blocks = scaling.shape
        eye = torch.eye(num_blocks, dtype=pairs.dtype, device=pairs.device)
        matrix = torch.einsum("rpij,pq->rpiqj", pairs, eye).reshape(num_generators, 2 * num_blocks, 2 * num_blocks)
        return matrix.expand(len(z), -1, -1, -1)


class CoefficientNet(nn.Module):
    """The scalars of the exponentials: a bias-free linear map of Δz, the identity where r = d.

    Without a bias Δz = 0 gives zero scalars, which keeps T(z → z) the identity exactly.
    """

    def __init__(self, descriptor_dim: int, num_generators: int) -> None:
        super().__init__()
        same = descriptor_dim == num_generators
        self.linear = nn.Identity() if same else nn.Linear(descriptor_dim, num_generators, bias=False)

    def forward(self, delta: Targets) -> Coefficients:
        """Return the coefficients of Δz for every source and target."""
        return self.linear(delta)


def make_generators(kind: str, descriptor_dim: int, latent_dim: int, num_generators: int, hidden: int) -> nn.Module:
    """Return the generators called `kind`: "field", "constant" or "commuting"."""
    kinds = {
        "field": lambda: GeneratorField(descriptor_dim, latent_dim, num_generators, hidden),
        "constant": lambda: ConstantGenerators(latent_dim, num_generators),
        "commuting": lambda: CommutingGenerators(latent_dim, num_generators),
    }
    if kind not in kinds:
        raise OptionError(f"There are no generators {kind!r}; {closest(kind, kinds)}")
    return kinds[kind]()
