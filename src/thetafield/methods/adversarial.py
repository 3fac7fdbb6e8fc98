"""What adversarial methods share: the features before the last layer, which a discriminator looks at."""

from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.methods.pooled import PooledMethod


class AdversarialMethod(PooledMethod):
    """A pooled method that also sees its features: everything before the last linear layer."""

    def split_outputs(self, batch: DomainBatch) -> tuple[Tensor, Tensor]:
        """Return (features (b, n, h), outputs (b, n, o)) under θ₀."""
        flat = self.predictor.features(batch.x.flatten(0, 1)[None])
        theta = self.learned.theta[None]
        features = self.predictor.embed(theta, flat)
        outputs = self.predictor.last(theta, features)
        shape = batch.weight.shape
        return features[0].unflatten(0, shape), outputs[0].unflatten(0, shape)
