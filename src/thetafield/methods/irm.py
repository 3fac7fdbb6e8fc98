"""IRM: a representation whose best last scale is the same in every domain."""

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.penalised import PenalisedMethod
from thetafield.methods.space import LR, Choice, Range
from thetafield.options import Count, Natural, NonNegative, Positive
from thetafield.typing import Outputs, Risks


@METHODS.register("irm")
class IRM(PenalisedMethod):
    """mean_e R_e + λ mean_e g_e^even · g_e^odd, with g = d/dw of the risk of w·f at w = 1 (IRMv1).

    Even and odd positions of the batch give two independent estimates of the gradient, so that their product is an
    unbiased square and may be negative. The derivative is taken in closed form: no double backward. Regression uses
    the squared error inside the penalty, since the absolute one has no curvature.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        penalty: λ after the first `anneal_steps` batches, before which it is 1.
        anneal_steps: Batches before the switch, at which Adam is made anew.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Arjovsky et al., *Invariant Risk Minimization*, 2019 (arXiv 1907.02893).
    """

    name = "irm"
    title = "IRM"
    reference = "Arjovsky et al., 2019"
    divisible = True
    needs = Needs(min_domains=2)
    space = {"penalty": Range(0.1, 1e5), "anneal_steps": Choice((10, 100, 500, 1000)), "lr": LR}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        penalty: NonNegative = 100.0,
        anneal_steps: Natural = 500,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, penalty, anneal_steps, lr, weight_decay)

    def penalty(self, outputs: Outputs, risks: Risks, batch: DomainBatch) -> Tensor:
        """Return mean_e g_e^even · g_e^odd."""
        slope = self.scale_derivative(outputs, batch)
        return (_mean_of(slope, 0) * _mean_of(slope, 1)).mean()

    def scale_derivative(self, outputs: Outputs, batch: DomainBatch) -> Tensor:
        """Return d l(w·f, y) / dw at w = 1 for every sample, shape (b, n)."""
        if self.problem.loss == "cross_entropy":
            target = torch.nn.functional.one_hot(batch.y, outputs.shape[-1]).to(outputs)
            return ((outputs.softmax(-1) - target) * outputs).sum(-1)
        return (2 * (outputs - batch.y) * outputs).mean(-1)


def _mean_of(values: Tensor, parity: int) -> Tensor:
    """Return the mean over even (0) or odd (1) positions of each row; a lone sample is both halves."""
    return values[:, parity::2].mean(1) if values.shape[1] > 1 else values[:, 0]
