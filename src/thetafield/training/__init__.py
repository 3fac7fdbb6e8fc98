"""Training: one loop, the only owner of optimisers, with exact resume."""

from thetafield.training.fit import Progress, fit
from thetafield.training.train import Trained, train_field

__all__ = ["Progress", "Trained", "fit", "train_field"]
