"""ERM: one model for all domains."""

from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.fields.constant import ConstantField
from thetafield.methods.base import METHODS, Method, Phase, Player, Problem
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("erm")
class ERM(Method):
    """min_θ mean_e R_e(θ): pooled empirical risk, every domain in every batch.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Vapnik, *An overview of statistical learning theory*, IEEE Transactions on Neural Networks, 1999.
    """

    name = "erm"
    title = "ERM"
    reference = "Vapnik, 1999"

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem)
        self.steps, self.samples, self.lr, self.weight_decay = steps, samples, lr, weight_decay
        self.learned = ConstantField(problem.domains.z.shape[1], self.predictor.dim)
        self.learned.theta.data.copy_(self.predictor.start)

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the mean risk; all samples pass through the one head together."""
        flat = batch.x.flatten(0, 1)[None]
        outputs = self.predictor(self.learned.theta[None], flat)[0].unflatten(0, batch.weight.shape)
        return {"risk": self.problem.risks(outputs, batch).mean()}

    def phases(self) -> list[Phase]:
        """Return the one pooled phase."""
        player = Player(self.loss, list(self.parameters()), self.lr, self.weight_decay)
        return [self.sampled_phase("pooled", self.steps, self.samples, (player,))]

    def field(self) -> ConstantField:
        """Return θ(z) = θ₀."""
        return self.learned
