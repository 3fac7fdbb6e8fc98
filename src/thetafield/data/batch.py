"""A rectangular piece of many domains, as a training step takes it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class DomainBatch:
    """A rectangular piece of b domains with n samples each.

    Args:
        x: Inputs, shape (b, n, ...).
        y: Class indices (b, n) or targets (b, n, t).
        weight: Weight of each sample in its domain's risk, shape (b, n); every row sums to one, padding weighs nothing.
        index: Which domain each row is, shape (b,).
    """

    x: Tensor
    y: Tensor
    weight: Tensor
    index: Tensor
