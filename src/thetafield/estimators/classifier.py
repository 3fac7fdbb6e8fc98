"""The scikit-learn face for labels."""

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from thetafield.data.domains import DomainSet
from thetafield.estimators.base import FieldEstimator


class FieldClassifier(ClassifierMixin, FieldEstimator):
    """A classifier whose parameters are a function of the domain's descriptor.

    Without z and domain the whole data is one domain and the field is constant, so that it is an ordinary
    scikit-learn classifier.

    Args:
        method: How the field is learned; `thetafield list methods` names them.
        options: The method's options.
        predictor: Kind of the model at each descriptor.
        predictor_options: Its options.
        device: auto, cpu or cuda.
        random_state: Seed of the start, the batches and the noise.
        verbose: 1 shows the progress of `fit` on standard error, as `thetafield train` does; 0 shows nothing.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> z = np.repeat(np.linspace(0, 1, 8), 50)[:, None]
        >>> X = rng.normal(size=(400, 2))
        >>> y = X[:, 0] * np.cos(z[:, 0]) + X[:, 1] * np.sin(z[:, 0]) > 0
        >>> est = FieldClassifier("erm-d", options={"steps": 300}, random_state=0).fit(X, y, z=z)
        >>> bool(est.score(X, y, z=z) > 0.9)
        True
        >>> est.model_at([0.25])(torch.zeros(3, 2)).shape
        torch.Size([3, 2])
    """

    def fit(self, X: Any, y: Any = None, z: Any = None, domain: Any = None) -> "FieldClassifier":
        """Learn the field from rows X with labels y, descriptors z (per row or per domain) and domain of each row.

        Or from a :class:`DomainSet` alone, which holds all four.
        """
        if isinstance(X, DomainSet):
            self._fit_domains(X, None)
        else:
            X, y = validate_data(self, X, y, allow_nd=True, dtype=[np.float64, np.float32])
            check_classification_targets(y)
            self._fit(X, y, z, domain, None)
        assert self.model_.classes is not None
        self.classes_ = self.model_.classes
        return self

    def decision_function(self, X: Any, z: Any = None) -> np.ndarray:
        """Return logits (n, classes), or their difference (n,) for two classes."""
        logits = self._outputs(X, z)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any, z: Any = None) -> np.ndarray:
        """Return class probabilities (n, classes) at the rows' descriptors."""
        return torch.softmax(torch.from_numpy(self._outputs(X, z)), dim=1).numpy()

    def predict(self, X: Any, z: Any = None) -> np.ndarray:
        """Return the most probable label of each row at its descriptor."""
        winner = self._outputs(X, z).argmax(1)
        return self.classes_[winner]

    def predict_set(self, X: Any, z: Any = None, coverage: float = 0.9) -> np.ndarray:
        """Return which labels are likely enough, shape (n, classes): the true one is in that many of the sets.

        This holds on unseen domains that are like the training domains. A set may be empty, where no label looks as
        the true one usually does.
        """
        _, threshold = self._covering(coverage)
        return (-torch.log_softmax(torch.from_numpy(self._outputs(X, z)), 1) <= threshold).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None, z: Any = None) -> float:
        """Return the accuracy."""
        return float(accuracy_score(y, self.predict(X, z), sample_weight=sample_weight))
