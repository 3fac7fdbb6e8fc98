"""What the methods share whose one network reads the descriptor."""

from typing import Generic, TypeVar

from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.fields.base import ParameterField
from thetafield.methods.base import Method, Problem
from thetafield.methods.phase import Phase, Player
from thetafield.typing import Outputs

F = TypeVar("F", bound=ParameterField)


class ReadingMethod(Method, Generic[F]):
    """Pooled risk of a field θ(z) that is one trained network of z; a subclass sets `learned`.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.
        dropout: Share of what enters each linear layer of the head but the first that is dropped in training.
    """

    learned: F
    divisible = True

    def __init__(
        self, problem: Problem, steps: int, samples: int, lr: float, weight_decay: float, dropout: float = 0.0
    ) -> None:
        super().__init__(problem)
        self.steps, self.samples, self.lr, self.weight_decay = steps, samples, lr, weight_decay
        self.dropout = dropout

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the mean risk under θ(z)."""
        return {"risk": self.problem.risks(self.outputs(batch), batch).mean()}

    def outputs(self, batch: DomainBatch) -> Outputs:
        """Return g(x; θ(z))."""
        return self.predictor(self.learned(self.problem.domains.z[batch.index]), batch.x, self.dropped)

    @property
    def dropped(self) -> float:
        """Share of what enters a layer that is dropped now."""
        return self.dropout if self.training else 0.0

    def phases(self) -> list[Phase]:
        """Return the one pooled phase."""
        player = Player(self.loss, list(self.parameters()), self.lr, self.weight_decay)
        return [self.sampled_phase("pooled", self.steps, self.samples, (player,))]

    def field(self) -> F:
        """Return θ(z)."""
        return self.learned
