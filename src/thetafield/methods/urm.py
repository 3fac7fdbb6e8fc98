"""URM: features that fill their space evenly."""

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.methods.adversarial import AdversarialMethod
from thetafield.methods.base import METHODS, Problem
from thetafield.methods.phase import Phase, Player
from thetafield.methods.space import LR, Range
from thetafield.options import Count, NonNegative, Positive
from thetafield.predictors.perceptron import perceptron


@METHODS.register("urm")
class URM(AdversarialMethod):
    """R + λ BCE(Dsc(h), 1), against a discriminator that tells features from uniform noise.

    The head ends in ReLU before its last layer, so the noise is U(0, 1). The encoder moves first; the discriminator
    then learns from the very features of that step. λ multiplies its fake term as well. Domains are not used.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        adversary: λ.
        width: Width of the discriminator.
        lr: Adam's step size of both, falling to zero by a cosine.
        weight_decay: L2 coefficient of both.

    Reference:
        Krishnamachari et al., *Uniformly Distributed Feature Representations for Fair and Robust Learning*, TMLR 2024.
    """

    name = "urm"
    title = "URM"
    reference = "Krishnamachari et al., 2024"
    space = {"adversary": Range(0.0, 0.2, log=False), "lr": LR}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        adversary: NonNegative = 0.1,
        width: Count = 100,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        self.adversary = adversary
        self.discriminator = perceptron([self.predictor.embed_dim, width, width, 1], nn.LeakyReLU)

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the encoder's terms and keep its features for the discriminator."""
        features, outputs = self.split_outputs(batch)
        self.last_features = features.detach()
        risk = self.problem.risks(outputs, batch).mean()
        return {"risk": risk, "adversary": self.adversary * self.told(features, real=True)}

    def discriminator_loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the discriminator's terms on noise and on the features the encoder just gave."""
        noise = torch.rand_like(self.last_features)
        fake = self.adversary * self.told(self.last_features, real=False)
        return {"noise": self.told(noise, real=True), "features": fake}

    def told(self, features: Tensor, real: bool) -> Tensor:
        """Return the binary cross-entropy of calling all features noise (real) or not."""
        logits = self.discriminator(features)
        target = torch.full_like(logits, float(real))
        return nn.functional.binary_cross_entropy_with_logits(logits, target)

    def phases(self) -> list[Phase]:
        """Return the one phase in which encoder and discriminator both act in every step."""
        encoder = Player(self.loss, self.predictor_parameters(), self.lr, self.weight_decay)
        watching = list(self.discriminator.parameters())
        watcher = Player(self.discriminator_loss, watching, self.lr, self.weight_decay)
        return [self.sampled_phase("adversarial", self.steps, self.samples, (encoder, watcher))]
