"""The sequence field: one θ for each stretch of time between training domains, and one for all that follows."""

from typing import Any

import torch
from torch import Tensor, nn

from thetafield.fields.base import ParameterField


class SequenceField(ParameterField):
    """θ(z) = θ of row i, with i the number of training times before z: the last row is the future.

    Args:
        descriptor_dim: d, which is 1.
        theta_dim: D.
        num_anchors: N, in the order of their times; there are N + 1 rows.

    Example:
        >>> field = SequenceField(1, 1, 2)
        >>> _ = field.anchors.copy_(torch.tensor([[0.0], [1.0]]))
        >>> field.theta.data = torch.tensor([[10.0], [11.0], [12.0]])
        >>> field(torch.tensor([[0.0], [0.4], [1.0], [1.1]])).flatten().tolist()
        [10.0, 11.0, 11.0, 12.0]
    """

    kind = "sequence"
    anchors: Tensor

    def __init__(self, descriptor_dim: int, theta_dim: int, num_anchors: int) -> None:
        super().__init__(descriptor_dim, theta_dim)
        # Written by the method's recurrence, never by an optimiser.
        self.theta = nn.Parameter(torch.zeros(num_anchors + 1, theta_dim), requires_grad=False)
        self.register_buffer("anchors", torch.zeros(num_anchors, descriptor_dim))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return {
            "descriptor_dim": self.descriptor_dim,
            "theta_dim": self.theta_dim,
            "num_anchors": len(self.anchors),
        }

    def thetas(self, z: Tensor) -> Tensor:
        """Return the row of each descriptor's stretch of time."""
        return self.theta[torch.searchsorted(self.anchors[:, 0].contiguous(), z[:, 0].contiguous())]
