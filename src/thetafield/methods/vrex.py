"""V-REx: equal risks across domains."""

from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.penalised import PenalisedMethod
from thetafield.methods.space import LR, Choice, Range
from thetafield.options import Count, Natural, NonNegative, Positive
from thetafield.typing import Outputs, Risks


@METHODS.register("vrex")
class VREx(PenalisedMethod):
    """mean_e R_e + λ Var_e R_e, the population variance of the domains' risks.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        penalty: λ after the first `anneal_steps` batches, before which it is 1.
        anneal_steps: Batches before the switch, at which Adam is made anew.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Krueger et al., *Out-of-Distribution Generalization via Risk Extrapolation*, ICML 2021 (arXiv 2003.00688).
    """

    name = "vrex"
    title = "V-REx"
    reference = "Krueger et al., 2021"
    needs = Needs(min_domains=2)
    space = {"penalty": Range(0.1, 1e5), "anneal_steps": Choice((10, 100, 500, 1000)), "lr": LR}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        penalty: NonNegative = 10.0,
        anneal_steps: Natural = 500,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, penalty, anneal_steps, lr, weight_decay)

    def penalty(self, outputs: Outputs, risks: Risks, batch: DomainBatch) -> Tensor:
        """Return the population variance of the risks."""
        return risks.var(correction=0)
