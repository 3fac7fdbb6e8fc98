"""ERM-D: one model that also reads the descriptor."""

from thetafield.fields.modulated import ModulatedField
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.reading import ReadingMethod
from thetafield.methods.space import LR, STEPS, Choice
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("erm-d")
class ERMD(ReadingMethod[ModulatedField]):
    """Pooled risk of a head whose input is widened by ψ(z), a shallow perceptron of the standardised descriptor.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        hidden: Widths of ψ. The paper says "a shallow MLP" and no more.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Cai et al., *Continuous Domain Generalization*, NeurIPS 2025, appendix A.2.
    """

    name = "erm-d"
    title = "ERM-D"
    reference = "Cai et al., 2025"
    needs = Needs(descriptor=True)
    space = {"steps": STEPS, "hidden": Choice(((32,), (32, 32), (128, 128))), "lr": LR}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        hidden: tuple[Count, ...] = (32, 32),
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        z, bias = problem.domains.z, self.predictor.first_bias
        self.learned = ModulatedField(z.shape[1], self.predictor.dim, (bias.start, bias.stop), hidden)
        self.learned.theta.data.copy_(self.predictor.start)
        self.learned.mean.copy_(z.mean(0))
        if len(z) > 1:
            self.learned.std.copy_(z.std(0, correction=0))
