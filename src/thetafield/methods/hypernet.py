"""Hypernetwork: a perceptron that emits the parameters."""

from thetafield.fields.hypernet import HypernetField
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.reading import ReadingMethod
from thetafield.methods.space import DECAY, DROPOUT, LR, Choice
from thetafield.options import Count, NonNegative, Positive, Share


@METHODS.register("hypernet")
class Hypernet(ReadingMethod[HypernetField]):
    """Pooled risk of θ(z) = θ₀ + f_d(e(z)), with the decoder that NeuralLio has and nothing of its transport.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        latent_dim: m.
        hidden: Widths of the encoder of z.
        widths: Hidden widths of the coder, from its wide end.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.
        dropout: Share of what enters each linear layer of the head but the first that is dropped in training.

    Reference:
        Ha et al., *HyperNetworks*, ICLR 2017 (arXiv 1609.09106).
    """

    name = "hypernet"
    title = "Hypernetwork"
    reference = "Ha et al., 2017"
    needs = Needs(descriptor=True)
    space = {
        "lr": LR,
        "hidden": Choice(((128,), (128, 128), (256, 256, 256))),
        "latent_dim": Choice((16, 32, 64)),
        "weight_decay": DECAY,
        "dropout": DROPOUT,
    }

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        latent_dim: Count = 32,
        hidden: tuple[Count, ...] = (128, 128),
        widths: tuple[Count, ...] = (1024, 512, 128),
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
        dropout: Share = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay, dropout)
        width = problem.domains.z.shape[1]
        self.learned = HypernetField(width, self.predictor.dim, latent_dim, hidden, widths)
        self.learned.theta.data.copy_(self.predictor.start)
