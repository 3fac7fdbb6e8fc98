"""Pooled risk with a penalty that sets in after a while, under a fresh Adam."""

from abc import abstractmethod

from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.errors import OptionError
from thetafield.methods.base import Problem
from thetafield.methods.phase import Phase, Player, Schedule
from thetafield.methods.pooled import PooledMethod
from thetafield.typing import Outputs, Risks


class PenalisedMethod(PooledMethod):
    """mean_e R_e + λ_t · penalty, with λ_t = 1 for the first steps and the full weight after.

    At the switch Adam is made anew: the moments of the small penalty would otherwise carry the large one astray.

    Args:
        problem: The training side.
        steps: Number of batches in all.
        samples: Samples drawn from each domain for a batch.
        penalty: λ after the switch.
        anneal_steps: Steps before the switch.
        lr: Adam's step size.
        weight_decay: L2 coefficient.
    """

    def __init__(
        self,
        problem: Problem,
        steps: int,
        samples: int,
        penalty: float,
        anneal_steps: int,
        lr: float,
        weight_decay: float,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        if anneal_steps >= steps:
            raise OptionError(
                f"anneal_steps ({anneal_steps}) must be fewer than steps ({steps}): lower one, raise the other."
            )
        self.weight, self.anneal_steps = penalty, anneal_steps

    @abstractmethod
    def penalty(self, outputs: Outputs, risks: Risks, batch: DomainBatch) -> Tensor:
        """Return the penalty of a batch, a scalar."""

    def weighted(self, batch: DomainBatch, weight: float) -> dict[str, Tensor]:
        """Return the mean risk and the penalty under a weight."""
        outputs = self.outputs(batch)
        risks = self.problem.risks(outputs, batch)
        return {"risk": risks.mean(), "penalty": weight * self.penalty(outputs, risks, batch)}

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the terms after the switch."""
        return self.weighted(batch, self.weight)

    def phases(self) -> list[Phase]:
        """Return the phase with λ = 1 and the phase with the full weight."""
        parameters = self.predictor_parameters()
        light = Player(lambda batch: self.weighted(batch, 1.0), parameters, self.lr, self.weight_decay)
        full = Player(self.loss, parameters, self.lr, self.weight_decay)
        # One cosine over both phases: the switch makes a new Adam, not a new start of the step size.
        switch = self.anneal_steps / self.steps
        after = Schedule("cosine", start=switch)
        rest = self.steps - self.anneal_steps
        penalised = self.sampled_phase("penalised", rest, self.samples, (full,), schedule=after)
        if not self.anneal_steps:
            return [penalised]
        before = Schedule("cosine", end=switch)
        annealing = self.sampled_phase("annealing", self.anneal_steps, self.samples, (light,), schedule=before)
        return [annealing, penalised]
