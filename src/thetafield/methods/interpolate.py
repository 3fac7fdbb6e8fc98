"""Interpolate: a weighted mean of the tuned models of the nearest training domains."""

from thetafield.fields.interpolated import InterpolatedField
from thetafield.methods.base import METHODS, Problem
from thetafield.methods.nda import NDA
from thetafield.methods.space import Choice, Range
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("interpolate")
class Interpolate(NDA):
    """As NDA, but θ(z) is the mean of the k nearest θ_i, weighted by the inverse of their distance.

    All copies are tuned from one pooled solution, which keeps them in one basin, where means make sense.

    Args:
        problem: The training side.
        steps: Batches of the pooled phase.
        tune_steps: Batches of the tuning phase.
        samples: Samples drawn from each domain for a batch.
        neighbours: k; all domains where there are fewer.
        power: Power of the distance in the weights.
        lr: Adam's step size of the pooled phase, falling to zero by a cosine.
        tune_lr: The same of the tuning phase.
        weight_decay: L2 coefficient.

    Reference:
        Shepard, *A two-dimensional interpolation function for irregularly-spaced data*, ACM 1968.
    """

    name = "interpolate"
    title = "Interpolate"
    reference = "Shepard, 1968"
    space = {**NDA.space, "neighbours": Choice((2, 3, 5, 8)), "power": Range(0.5, 4.0)}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        tune_steps: Count = 500,
        samples: Count = 64,
        neighbours: Count = 5,
        power: Positive = 1.0,
        lr: Positive = 1e-3,
        tune_lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(
            problem,
            steps=steps,
            tune_steps=tune_steps,
            samples=samples,
            lr=lr,
            tune_lr=tune_lr,
            weight_decay=weight_decay,
        )
        z = problem.domains.z
        self.learned = InterpolatedField(z.shape[1], self.predictor.dim, len(z), neighbours, power)
        self.learned.anchors.copy_(z)
