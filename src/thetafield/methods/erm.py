"""ERM: one model for all domains."""

from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS, Problem
from thetafield.methods.pooled import PooledMethod
from thetafield.methods.space import DECAY, DROPOUT, LR, STEPS
from thetafield.options import Count, NonNegative, Positive, Share


@METHODS.register("erm")
class ERM(PooledMethod):
    """min_θ mean_e R_e(θ): pooled empirical risk, every domain in every batch.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.
        dropout: Share of what enters each linear layer of the head but the first that is dropped in training.

    Reference:
        Vapnik, *An overview of statistical learning theory*, IEEE Transactions on Neural Networks, 1999.
    """

    name = "erm"
    title = "ERM"
    reference = "Vapnik, 1999"
    divisible = True
    space = {"steps": STEPS, "lr": LR, "weight_decay": DECAY, "dropout": DROPOUT}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
        dropout: Share = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay, dropout)

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the mean risk."""
        return {"risk": self.risks(batch).mean()}
