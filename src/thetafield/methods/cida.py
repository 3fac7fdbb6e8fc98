"""CIDA: features from which the descriptor cannot be read."""

from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.erm_d import ERMD
from thetafield.methods.phase import Phase, Player
from thetafield.methods.space import LR, Choice
from thetafield.options import Count, NonNegative, Positive
from thetafield.predictors.perceptron import perceptron


@METHODS.register("cida")
class CIDA(ERMD):
    """R − λ r, against a discriminator that regresses the standardised descriptor from the features, r its MSE.

    The encoder reads x and z: its head's first bias follows ψ(z), as in ERM-D. In every step the discriminator moves
    first, on detached features. Several descriptors are several outputs of the discriminator.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        hidden: Widths of ψ.
        adversary: λ.
        width: Width of the discriminator's three hidden layers.
        lr: Adam's step size of both, falling to zero by a cosine.
        weight_decay: L2 coefficient of the predictor.

    Reference:
        Wang et al., *Continuously Indexed Domain Adaptation*, ICML 2020 (arXiv 2007.01807).
    """

    name = "cida"
    title = "CIDA"
    reference = "Wang et al., 2020"
    needs = Needs(descriptor=True, min_domains=2)
    space = {"adversary": Choice((0.1, 0.4, 1.0, 2.0)), "hidden": Choice(((32, 32), (128, 128))), "lr": LR}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        hidden: tuple[Count, ...] = (32, 32),
        adversary: NonNegative = 0.1,
        width: Count = 256,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps=steps, samples=samples, hidden=hidden, lr=lr, weight_decay=weight_decay)
        self.adversary = adversary
        self.discriminator = perceptron([self.predictor.embed_dim, width, width, width, problem.domains.z.shape[1]])

    def encode(self, batch: DomainBatch) -> tuple[Tensor, Tensor]:
        """Return (features, outputs) under θ(z)."""
        theta = self.learned(self.problem.domains.z[batch.index])
        features = self.predictor.embed(theta, self.predictor.features(batch.x))
        return features, self.predictor.last(theta, features)

    def regression_loss(self, features: Tensor, batch: DomainBatch) -> Tensor:
        """Return r, the mean squared error of the descriptor read from the features."""
        z = (self.problem.domains.z[batch.index] - self.learned.mean) / self.learned.std
        return nn.functional.mse_loss(self.discriminator(features), z[:, None].expand(-1, features.shape[1], -1))

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the predictor's terms."""
        features, outputs = self.encode(batch)
        risk = self.problem.risks(outputs, batch).mean()
        return {"risk": risk, "adversary": -self.adversary * self.regression_loss(features, batch)}

    def discriminator_loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the discriminator's term."""
        return {"discriminator": self.regression_loss(self.encode(batch)[0].detach(), batch)}

    def phases(self) -> list[Phase]:
        """Return the one phase in which discriminator and predictor both act in every step, in that order."""
        watcher = Player(self.discriminator_loss, list(self.discriminator.parameters()), self.lr)
        parameters = [*self.learned.parameters(), *self.predictor.parameters()]
        predictor = Player(self.loss, parameters, self.lr, self.weight_decay)
        return [self.sampled_phase("adversarial", self.steps, self.samples, (watcher, predictor))]
