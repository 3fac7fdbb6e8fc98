"""ERM-D: one model that also reads the descriptor."""

from thetafield.data.domains import DomainBatch
from thetafield.fields.modulated import ModulatedField
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.reading import ReadingMethod
from thetafield.methods.space import DECAY, DROPOUT, LR, STEPS, Choice
from thetafield.options import Count, Natural, NonNegative, Positive, Share
from thetafield.typing import Outputs


@METHODS.register("erm-d")
class ERMD(ReadingMethod[ModulatedField]):
    """Pooled risk of a head whose input is widened by ψ(z), a shallow perceptron of the standardised descriptor.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        hidden: Widths of ψ. The paper says "a shallow MLP" and no more.
        knots: Intervals, between quantiles of the training domains, in which ψ is told where each coordinate lies; 0
            tells it the coordinate alone.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.
        dropout: Share of what enters each linear layer of the head but the first that is dropped in training.

    Reference:
        Cai et al., *Continuous Domain Generalization*, NeurIPS 2025, appendix A.2.
    """

    name = "erm-d"
    title = "ERM-D"
    reference = "Cai et al., 2025"
    needs = Needs(descriptor=True)
    space = {
        "steps": STEPS,
        "hidden": Choice(((32,), (32, 32), (128, 128))),
        "knots": Choice((0, 16)),
        "lr": LR,
        "weight_decay": DECAY,
        "dropout": DROPOUT,
    }

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        hidden: tuple[Count, ...] = (32, 32),
        knots: Natural = 0,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
        dropout: Share = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay, dropout)
        z, bias = problem.domains.z, self.predictor.first_bias
        self.learned = ModulatedField(z.shape[1], self.predictor.dim, (bias.start, bias.stop), hidden, knots)
        self.learned.theta.data.copy_(self.predictor.start)
        self.learned.look_at(z)

    def outputs(self, batch: DomainBatch) -> Outputs:
        """Return g(x; θ(z)); all samples pass through the one head together, since domains differ in its first bias."""
        if self.predictor.widths is None:
            return super().outputs(batch)
        shift = self.learned.shifts(self.problem.domains.z[batch.index])
        return self.predictor.shifted(self.learned.theta, shift, batch.x, self.dropped)
