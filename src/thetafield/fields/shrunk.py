"""The shrunk field: a base, and as much of what was learned beyond it as held-out domains bear out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from thetafield.fields.base import FIELDS, ParameterField
from thetafield.fields.transported import TransportedField
from thetafield.geometry.neighbours import nearest

NOTHING = 1e-6  # a share below which the base answers alone


class ShrunkField(ParameterField):
    """θ(z) = θ_base(z) + α(z)·Δ(z), with Δ carried over charts and α = shrink · exp(−½ (distance / reach)²).

    With shrink = 0 it is the base, bit for bit.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        base: Kind and config of the base.
        moved: Config of the transported field, which holds θ₀ + Δ with θ₀ where its coder is centred.
        shrink: α near the training domains.
        reach: Distance under the charts' metric over which α fades; None lets it be the same everywhere.
    """

    kind = "shrunk"
    centre: Tensor

    def __init__(
        self,
        descriptor_dim: int,
        theta_dim: int,
        base: Mapping[str, Any],
        moved: Mapping[str, Any],
        shrink: float = 1.0,
        reach: float | None = None,
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self.base = FIELDS[base["kind"]](**base["config"])
        self.moved = TransportedField(**moved)
        self.register_buffer("centre", torch.zeros(theta_dim))
        self.shrink, self.reach = shrink, reach

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {
            "descriptor_dim": self.descriptor_dim,
            "theta_dim": self.theta_dim,
            "base": {"kind": self.base.kind, "config": self.base.config},
            "moved": self.moved.config,
            "shrink": self.shrink,
            "reach": self.reach,
        }

    def alpha(self, z: Tensor) -> Tensor:
        """Return α at each descriptor, shape (b, 1)."""
        if self.reach is None:
            return z.new_full((len(z), 1), self.shrink)
        distance, _ = nearest(self.moved.charted(z), self.moved.charted(self.moved.anchors))
        return self.shrink * torch.exp(-0.5 * (distance / self.reach) ** 2)

    def thetas(self, z: Tensor) -> Tensor:
        """Return the base plus its share of what was carried."""
        base = self.base.thetas(z)
        if self.shrink == 0:
            return base
        alpha = self.alpha(z)
        # Far away nothing is added, not even of what a transport over such a distance makes no number of.
        return torch.where(alpha < NOTHING, base, base + alpha * (self.moved.thetas(z) - self.centre))

    def doubts(self, z: Tensor) -> Tensor:
        """Return those of what was carried; charts disagree as far as their share goes."""
        doubts, alpha = self.moved.doubts(z), self.alpha(z)
        return torch.cat([doubts[:, :1], torch.where(alpha < NOTHING, 0, alpha * doubts[:, 1:])], 1)

    def opinions(self, z: Tensor) -> Tensor:
        """Return the base plus what each chart alone would add."""
        base, alpha = self.base.thetas(z)[:, None], self.alpha(z)[:, None]
        return torch.where(alpha < NOTHING, base, base + alpha * (self.moved.opinions(z) - self.centre))

    def relevance(self, z: Tensor) -> Tensor:
        """Return that of what was carried, or of the base where nothing was."""
        learned = self.moved.learned_relevance
        told = learned is not None and bool(learned.any())
        return self.base.relevance(z) if self.shrink == 0 and not told else self.moved.relevance(z)
