"""GroupDRO: weights that grow with a domain's risk."""

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.pooled import PooledMethod
from thetafield.methods.space import LR, Range
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("groupdro")
class GroupDRO(PooledMethod):
    """Σ_e q_e R_e with q_e ← q_e exp(η R_e), normalised: exponentiated ascent on the domains' weights.

    The weights start at one, are updated before they are used, and persist over the run.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        eta: Step size η of the weights.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Sagawa et al., *Distributionally Robust Neural Networks for Group Shifts*, ICLR 2020 (arXiv 1911.08731).
    """

    name = "groupdro"
    title = "GroupDRO"
    reference = "Sagawa et al., 2020"
    needs = Needs(min_domains=2)
    space = {"eta": Range(1e-3, 1e-1), "lr": LR}
    group_weights: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        eta: Positive = 0.01,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        self.eta = eta
        self.register_buffer("group_weights", torch.ones(len(problem.domains)))

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Update the weights with the detached risks, then return the weighted sum."""
        risks = self.risks(batch)
        with torch.no_grad():
            grown = self.group_weights[batch.index] * torch.exp(self.eta * risks)
            self.group_weights[batch.index] = grown
            self.group_weights /= self.group_weights.sum()
        return {"weighted risk": (self.group_weights[batch.index].clone() * risks).sum()}
