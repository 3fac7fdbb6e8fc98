"""Mixup between domains."""

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.pooled import PooledMethod
from thetafield.methods.space import LR, Range
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("mixup")
class Mixup(PooledMethod):
    """Risk of samples mixed across a random ring of domains, one λ ~ Beta(α, α) per pair.

    Classes mix the two losses; numbers mix the targets, which for the absolute error is not the same.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        alpha: α of the Beta distribution.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Yan et al., *Improve Unsupervised Domain Adaptation with Mixup Training*, 2020 (arXiv 2001.00677).
    """

    name = "mixup"
    title = "Mixup"
    reference = "Yan et al., 2020"
    needs = Needs(min_domains=2)
    space = {"alpha": Range(0.1, 10.0), "lr": LR}
    renumberable = False

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        alpha: Positive = 0.2,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        self.alpha = alpha

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Draw the ring and the shares, and return the mean risk of the pairs."""
        count, device = len(batch.x), batch.weight.device
        ring = torch.rand(count, device=device).argsort()
        concentration = torch.full((count,), self.alpha, dtype=batch.weight.dtype, device=device)
        share = torch.distributions.Beta(concentration, concentration, validate_args=False).sample()
        return {"risk": self.mixed_risks(batch, ring, share).mean()}

    def mixed_risks(self, batch: DomainBatch, ring: Tensor, share: Tensor) -> Tensor:
        """Return the risk of each domain in `ring` mixed with its successor, shape (b,)."""
        first, second = _rows(batch, ring), _rows(batch, ring.roll(-1))
        mixed = DomainBatch(_mix(first.x, second.x, share), first.y, first.weight, first.index)
        outputs = self.outputs(mixed)
        if self.problem.loss == "cross_entropy":
            risks = (self.problem.risks(outputs, part) for part in (first, second))
            return torch.stack(list(risks), -1).mul(torch.stack([share, 1 - share], -1)).sum(-1)
        targets = _mix(first.y, second.y, share)
        return self.problem.risks(outputs, DomainBatch(mixed.x, targets, mixed.weight, mixed.index))


def _rows(batch: DomainBatch, order: Tensor) -> DomainBatch:
    return DomainBatch(batch.x[order], batch.y[order], batch.weight[order], batch.index[order])


def _mix(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    weight = share.reshape(-1, *[1] * (first.ndim - 1))
    return weight * first + (1 - weight) * second
