"""NDA: the fine-tuned model of the nearest training domain."""

from dataclasses import replace

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.fields.table import TableField
from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.erm import ERM
from thetafield.methods.phase import Phase, Player
from thetafield.methods.space import LR, Choice, Range
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("nda")
class NDA(Method):
    """Nearest domain adaptation: pool, then tune a copy for every domain, all copies in one batched pass.

    Args:
        problem: The training side.
        steps: Batches of the pooled phase.
        tune_steps: Batches of the tuning phase.
        samples: Samples drawn from each domain for a batch.
        lr: Adam's step size of the pooled phase, falling to zero by a cosine.
        tune_lr: The same of the tuning phase.
        weight_decay: L2 coefficient.

    Reference:
        Cai et al., *Continuous Domain Generalization*, NeurIPS 2025, appendix A.2.
    """

    name = "nda"
    title = "NDA"
    reference = "Cai et al., 2025"
    divisible = True
    needs = Needs(descriptor=True)
    space = {"tune_steps": Choice((100, 500, 2000)), "tune_lr": Range(1e-4, 3e-3), "lr": LR}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        tune_steps: Count = 500,
        samples: Count = 64,
        lr: Positive = 1e-3,
        tune_lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem)
        self.tune_steps, self.samples, self.tune_lr, self.weight_decay = tune_steps, samples, tune_lr, weight_decay
        z = problem.domains.z
        self.pooled = ERM(problem, steps=steps, samples=samples, lr=lr, weight_decay=weight_decay)
        self.learned = TableField(z.shape[1], self.predictor.dim, len(z))
        self.learned.anchors.copy_(z)

    @torch.no_grad()
    def copy_pooled(self) -> None:
        """Start every domain's copy at the pooled solution."""
        self.learned.theta.copy_(self.pooled.learned.theta.expand_as(self.learned.theta))

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the sum of the domains' own risks: each copy feels its own domain only."""
        outputs = self.predictor(self.learned.theta[batch.index], batch.x)
        return {"risk": self.problem.risks(outputs, batch).sum()}

    def phases(self) -> list[Phase]:
        """Return the pooled phase, then the tuning of the heads on a frozen backbone."""
        player = Player(self.loss, [self.learned.theta], self.tune_lr, self.weight_decay)
        tuning = self.sampled_phase("tuning", self.tune_steps, self.samples, (player,), begin=self.copy_pooled)
        # A sum needs no factor to be the sum of its parts.
        return [*self.pooled.phases(), replace(tuning, share=1.0)]

    def field(self) -> TableField:
        """Return the table of tuned heads."""
        return self.learned
