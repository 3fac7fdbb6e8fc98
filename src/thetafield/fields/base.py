"""The one noun of the library: a module whose forward pass returns parameters, given a descriptor."""

from abc import ABC, abstractmethod
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from thetafield.errors import DataError

CELLS = 2**24  # numbers held at once
FIELDS: dict[str, type["ParameterField"]] = {}


class ParameterField(nn.Module, ABC):
    """θ: Z → Θ. A subclass states its constructor arguments in `config`, so that a saved field can be rebuilt.

    Args:
        descriptor_dim: d, the width of z.
        theta_dim: D, the length of θ.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        FIELDS[cls.kind] = cls

    def __init__(self, descriptor_dim: int, theta_dim: int) -> None:
        super().__init__()
        self.descriptor_dim = descriptor_dim
        self.theta_dim = theta_dim

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """The constructor arguments, as plain JSON values."""

    @abstractmethod
    def thetas(self, z: Tensor) -> Tensor:
        """Return θ of shape (b, D) at scaled descriptors of shape (b, d)."""

    def forward(self, z: Tensor) -> Tensor:
        """Return θ(z) of shape (..., D) for scaled descriptors of shape (..., d) in one batched call."""
        if z.shape[-1] != self.descriptor_dim:
            raise DataError(
                f"z has width {z.shape[-1]}, but the field was fitted with {self.descriptor_dim} descriptors."
            )
        flat = z.reshape(prod(z.shape[:-1]), self.descriptor_dim)
        return self.thetas(flat).reshape(*z.shape[:-1], self.theta_dim)

    def doubts(self, z: Tensor) -> Tensor:
        """Return signs that θ may be wrong at scaled descriptors of shape (b, d), each growing with doubt: (b, s).

        Here there are none.
        """
        return z.new_zeros(len(z), 0)

    def opinions(self, z: Tensor) -> Tensor:
        """Return what each part of the field alone would answer, shape (b, c, D); here the field is one part."""
        return self.thetas(z)[:, None]

    @torch.no_grad()
    def sensitivity(self, z: Tensor, step: float = 1e-3) -> Tensor:
        """Return the mean of ‖∂θ/∂z_k‖ over descriptors of shape (b, d), by one-sided differences, shape (d,)."""
        eye = step * torch.eye(self.descriptor_dim, dtype=z.dtype, device=z.device)
        rows = max(1, CELLS // (self.theta_dim * self.descriptor_dim))  # θ at every moved descriptor is held at once
        parts = [(self(part[:, None] + eye) - self(part)[:, None]).norm(dim=-1) for part in z.split(rows)]
        return torch.cat(parts).mean(0) / step

    def relevance(self, z: Tensor) -> Tensor:
        """Return how much each coordinate drives the shift, with a lower and an upper end, shape (3, d).

        The strongest is one. Here it is the field's own sensitivity at descriptors of shape (b, d), which has no ends.
        """
        strength = self.sensitivity(z)
        largest = strength.max()
        return (strength / largest if largest > 0 else strength).expand(3, -1)
