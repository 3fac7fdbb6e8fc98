"""CDANN: features from which the domain cannot be told once the class is known."""

from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import METHODS
from thetafield.methods.dann import DANN


@METHODS.register("cdann")
class CDANN(DANN):
    """DANN whose discriminator sees h(x) + Emb(y), with a cross-entropy in which every class weighs the same.

    A sample of class y weighs 1 / (n_y K), with n_y the number of such samples in the batch and K classes. For numbers,
    which the method does not define, Emb is a linear map of the standardised target and all samples weigh the same.
    Same options as DANN.

    Reference:
        Li et al., *Deep Domain Generalization via Conditional Invariant Adversarial Networks*, ECCV 2018.
    """

    name = "cdann"
    title = "CDANN"
    reference = "Li et al., 2018b"

    def make_condition(self) -> nn.Module:
        """Return Emb: a table of classes, or a linear map of the target."""
        count = self.problem.domains.num_outputs
        if self.problem.loss == "cross_entropy":
            return nn.Embedding(count, self.predictor.embed_dim)
        return nn.Linear(count, self.predictor.embed_dim)

    def conditioned(self, features: Tensor, batch: DomainBatch) -> Tensor:
        """Return h(x) + Emb(y)."""
        assert self.condition is not None
        return features + self.condition(batch.y)

    def sample_weights(self, batch: DomainBatch) -> Tensor:
        """Return 1 / (n_y K) for classes, the same for all otherwise; a class absent from the batch weighs nothing."""
        if self.problem.loss != "cross_entropy":
            return super().sample_weights(batch)
        classes = self.problem.domains.num_outputs
        label = batch.y.flatten()
        counts = nn.functional.one_hot(label, classes).sum(0)  # bincount would ask the host
        return 1 / (counts[label] * classes).to(batch.weight)
