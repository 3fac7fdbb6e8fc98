"""The flow field: parameters that move along one ordered coordinate by a learned differential equation."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField
from thetafield.geometry.coder import WIDTHS, PerceptronCoder
from thetafield.geometry.flow import make_flow


class FlowField(ParameterField):
    """θ(z) = decode(flow(encode(θ_i), z − z_i)) from the latest training time z_i not after z.

    Before the first training time the flow runs backwards from it. Time is counted in mean distances between training
    times.

    Args:
        descriptor_dim: d, which is 1.
        theta_dim: D.
        num_anchors: N, in the order of their times.
        latent_dim: m.
        widths: Hidden widths of the coder.
        dynamics: "linear", "skew", "low-rank" or "neural".
        hidden: Width of the neural dynamics.
    """

    kind = "flow"
    anchors: Tensor

    def __init__(
        self,
        descriptor_dim: int,
        theta_dim: int,
        num_anchors: int,
        latent_dim: int = 32,
        widths: Sequence[int] = WIDTHS,
        dynamics: str = "linear",
        hidden: int = 128,
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self._config = {
            "descriptor_dim": descriptor_dim,
            "theta_dim": theta_dim,
            "num_anchors": num_anchors,
            "latent_dim": latent_dim,
            "widths": list(widths),
            "dynamics": dynamics,
            "hidden": hidden,
        }
        self.theta = nn.Parameter(torch.zeros(num_anchors, theta_dim))
        self.register_buffer("anchors", torch.zeros(num_anchors, descriptor_dim))
        self.coder = PerceptronCoder(theta_dim, latent_dim, tuple(widths))
        self.flow = make_flow(dynamics, latent_dim, hidden)

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return dict(self._config)

    def times(self, z: Tensor) -> Tensor:
        """Return scaled descriptors, which run from 0 to 1 over the training domains, in mean distances of these."""
        return z * max(1, len(self.anchors) - 1)

    def thetas(self, z: Tensor) -> Tensor:
        """Let the latest anchor's latent flow to each descriptor and decode it."""
        before = torch.searchsorted(self.anchors[:, 0].contiguous(), z[:, 0].contiguous(), right=True) - 1
        used, anchor = torch.unique(before.clamp(min=0), return_inverse=True)
        latent = self.coder.encode(self.theta[used])[anchor]
        moved = self.flow(latent, self.times(z - self.anchors[used[anchor]]))
        return self.coder.decode(moved[:, 0])
