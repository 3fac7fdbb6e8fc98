"""DANN: features from which the domain cannot be told."""

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.methods.adversarial import AdversarialMethod
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.phase import Phase, Player
from thetafield.methods.space import LR, Choice, Range
from thetafield.options import Count, NonNegative, Positive
from thetafield.predictors.perceptron import perceptron


@METHODS.register("dann")
class DANN(AdversarialMethod):
    """Predictor: R − λ L_D. Discriminator: L_D, the cross-entropy of the domain given the features.

    The two take turns, predictor first, without gradient reversal or a schedule of λ. Only every other batch trains the
    predictor, so the default number of batches is twice that of ERM.

    Args:
        problem: The training side.
        steps: Number of batches, of both players together.
        samples: Samples drawn from each domain for a batch.
        adversary: λ.
        width: Width of the discriminator's two hidden layers.
        discriminator_steps: Turns of the discriminator for each turn of the predictor.
        gradient_penalty: γ, weight of the discriminator's mean squared gradient with respect to the features.
        lr: Adam's step size of both, falling to zero by a cosine; averaging factors 0.5 and 0.9.
        weight_decay: L2 coefficient of the predictor.

    Reference:
        Ganin et al., *Domain-Adversarial Training of Neural Networks*, JMLR 2016 (arXiv 1505.07818).
    """

    name = "dann"
    title = "DANN"
    reference = "Ganin et al., 2016"
    needs = Needs(min_domains=2)
    space = {"adversary": Range(1e-2, 1e2), "discriminator_steps": Choice((1, 2, 4)), "lr": LR}
    renumberable = False

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 4000,
        samples: Count = 64,
        adversary: NonNegative = 1.0,
        width: Count = 256,
        discriminator_steps: Count = 1,
        gradient_penalty: NonNegative = 0.0,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        self.adversary, self.discriminator_steps, self.gradient_penalty = (
            adversary,
            discriminator_steps,
            gradient_penalty,
        )
        self.discriminator = perceptron([self.predictor.embed_dim, width, width, len(problem.domains)])
        self.condition = self.make_condition()

    def make_condition(self) -> nn.Module | None:
        """Return what is added to the features before the discriminator sees them; nothing here."""
        return None

    def domain_loss(self, features: Tensor, batch: DomainBatch) -> Tensor:
        """Return L_D: mean cross-entropy of the domain, plus the gradient penalty."""
        domain = batch.index[:, None].expand(batch.weight.shape).flatten()
        seen = self.conditioned(features, batch).flatten(0, 1)
        each = nn.functional.cross_entropy(self.discriminator(seen), domain, reduction="none")
        loss = (each * self.sample_weights(batch)).sum()
        if self.gradient_penalty:
            (slope,) = torch.autograd.grad(each.sum(), seen, create_graph=True)
            loss = loss + self.gradient_penalty * slope.square().sum(1).mean()
        return loss

    def conditioned(self, features: Tensor, batch: DomainBatch) -> Tensor:
        """Return what the discriminator sees of the features."""
        return features

    def sample_weights(self, batch: DomainBatch) -> Tensor:
        """Return the weight of each sample in L_D, shape (b · n,)."""
        return torch.full_like(batch.weight, 1 / batch.weight.numel()).flatten()

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the predictor's terms."""
        features, outputs = self.split_outputs(batch)
        risk = self.problem.risks(outputs, batch).mean()
        return {"risk": risk, "adversary": -self.adversary * self.domain_loss(features, batch)}

    def discriminator_loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the discriminator's term."""
        features = self.split_outputs(batch)[0].detach().requires_grad_()
        return {"discriminator": self.domain_loss(features, batch)}

    def phases(self) -> list[Phase]:
        """Return the one phase in which predictor and discriminator take turns."""
        betas = (0.5, 0.9)
        watching = [*self.discriminator.parameters(), *(self.condition.parameters() if self.condition else ())]
        predictor = Player(self.loss, self.predictor_parameters(), self.lr, self.weight_decay, betas)
        watcher = Player(self.discriminator_loss, watching, self.lr, 0.0, betas)
        turns = (0, *[1] * self.discriminator_steps)
        return [self.sampled_phase("adversarial", self.steps, self.samples, (predictor, watcher), turns)]
