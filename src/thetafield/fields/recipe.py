"""What it takes to rebuild a model: its recipe, and the affine maps between raw and standardised columns."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


class Affine(nn.Module):
    """x ↦ (x − shift) / scale, and back."""

    shift: Tensor
    scale: Tensor

    def __init__(self, shift: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)

    @classmethod
    def fit(cls, values: Tensor) -> "Affine":
        """Standardise each column; a constant column is only shifted."""
        wide = values.double()
        scale = wide.std(0, correction=0)
        scale = torch.where(scale > 1e-12 * wide.abs().amax(0).clamp_min(1e-300), scale, torch.ones_like(scale))
        return cls(wide.mean(0).to(values), scale.to(values))

    def forward(self, x: Tensor) -> Tensor:
        """Return (x − shift) / scale."""
        return (x - self.shift.to(x)) / self.scale.to(x)

    def inverse(self, x: Tensor) -> Tensor:
        """Return x · scale + shift."""
        return x * self.scale.to(x) + self.shift.to(x)


@dataclass(frozen=True)
class Recipe:
    """What it takes to rebuild a model and to read its answers, in plain JSON values.

    Args:
        method: Registry name of the method that learned the field.
        options: Its options.
        predictor: Registry name of the predictor.
        predictor_options: Its options.
        input_shape: Shape of one sample.
        num_outputs: Classes or target columns.
        loss: Loss of a sample in training.
        descriptors: Name of each descriptor coordinate.
        factors: Factor behind each coordinate.
        features: Names of the input columns, if known.
        single_target: Whether a regression target was one-dimensional, so that answers are too.
        lift: Name of what the head's features pass through before its last layer, if anything.
    """

    method: str
    options: dict[str, Any]
    predictor: str
    predictor_options: dict[str, Any]
    input_shape: tuple[int, ...]
    num_outputs: int
    loss: str
    descriptors: tuple[str, ...]
    factors: tuple[str, ...]
    features: tuple[str, ...] | None = None
    single_target: bool = True
    lift: str | None = None
