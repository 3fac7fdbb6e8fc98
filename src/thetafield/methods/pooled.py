"""What the methods with one θ for all domains share."""

from abc import abstractmethod

from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.fields.constant import ConstantField
from thetafield.methods.base import Method, Problem
from thetafield.methods.phase import Phase, Player
from thetafield.typing import Outputs, Risks


class PooledMethod(Method):
    """A method whose field is constant: θ(z) = θ₀, trained on batches that hold every domain.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.
        dropout: Share of what enters each linear layer of the head but the first that is dropped in training.
    """

    def __init__(
        self, problem: Problem, steps: int, samples: int, lr: float, weight_decay: float, dropout: float = 0.0
    ) -> None:
        super().__init__(problem)
        self.steps, self.samples, self.lr, self.weight_decay = steps, samples, lr, weight_decay
        self.dropout = dropout
        self.learned = ConstantField(problem.domains.z.shape[1], self.predictor.dim)
        self.learned.theta.data.copy_(self.predictor.start)

    @abstractmethod
    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the terms of the loss of a batch."""

    def outputs(self, batch: DomainBatch) -> Outputs:
        """Return g(x; θ₀); all samples pass through the one head together."""
        dropped = self.dropout if self.training else 0.0
        outputs = self.predictor.single(self.learned.theta, batch.x.flatten(0, 1), dropped)
        return outputs.unflatten(0, batch.weight.shape)

    def risks(self, batch: DomainBatch) -> Risks:
        """Return R_e(θ₀) of each domain."""
        return self.problem.risks(self.outputs(batch), batch)

    def predictor_parameters(self) -> list[nn.Parameter]:
        """The head's θ₀ and the backbone, without whatever else a method trains beside them."""
        return [self.learned.theta, *self.predictor.parameters()]

    def phases(self) -> list[Phase]:
        """Return the one pooled phase."""
        player = Player(self.loss, self.predictor_parameters(), self.lr, self.weight_decay)
        return [self.sampled_phase("pooled", self.steps, self.samples, (player,))]

    def field(self) -> ConstantField:
        """Return θ(z) = θ₀."""
        return self.learned
