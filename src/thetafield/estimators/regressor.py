"""The scikit-learn face for numbers."""

from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from thetafield.data.domains import DomainSet
from thetafield.errors import OptionError
from thetafield.estimators.base import FieldEstimator
from thetafield.fields.doubt import expected_error


class FieldRegressor(RegressorMixin, FieldEstimator):
    """A regressor whose parameters are a function of the domain's descriptor.

    Without z and domain the whole data is one domain and the field is constant, so that it is an ordinary
    scikit-learn regressor.

    Args:
        method: How the field is learned; `thetafield list methods` names them.
        options: The method's options.
        predictor: Kind of the model at each descriptor.
        predictor_options: Its options.
        loss: "squared_error" for means, "absolute_error" for medians.
        device: auto, cpu or cuda.
        random_state: Seed of the start, the batches and the noise.
        verbose: 1 shows the progress of `fit` on standard error, as `thetafield train` does; 0 shows nothing.
    """

    def __init__(
        self,
        method: str = "neurallio",
        *,
        options: dict[str, Any] | None = None,
        predictor: str = "mlp",
        predictor_options: dict[str, Any] | None = None,
        loss: str = "squared_error",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            method,
            options=options,
            predictor=predictor,
            predictor_options=predictor_options,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.loss = loss

    def fit(self, X: Any, y: Any = None, z: Any = None, domain: Any = None) -> "FieldRegressor":
        """Learn the field from rows X with targets y, descriptors z (per row or per domain) and domain of each row.

        Or from a :class:`DomainSet` alone, which holds all four.
        """
        if self.loss not in ("squared_error", "absolute_error"):
            raise OptionError(f"loss is 'squared_error' or 'absolute_error', but got {self.loss!r}.")
        if isinstance(X, DomainSet):
            self._fit_domains(X, self.loss)
            return self
        X, y = validate_data(
            self, X, y, allow_nd=True, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True
        )
        self._fit(X, y, z, domain, self.loss)
        return self

    def predict(self, X: Any, z: Any = None) -> np.ndarray:
        """Return the target of each row at its descriptor."""
        answer = self._outputs(X, z)
        return answer[:, 0] if self.model_.squeezed else answer

    def predict_interval(self, X: Any, z: Any = None, coverage: float = 0.9) -> np.ndarray:
        """Return the two ends of an interval for each row, shape (n, 2) or (n, t, 2): that many hold the target.

        This holds on unseen domains that are like the training domains; intervals are wide where errors are expected.
        """
        model, threshold = self._covering(coverage)
        rows, z = self._rows(X, z)
        answer = model.row_outputs(rows, z).cpu()
        half = threshold * expected_error(model, z)[:, None]
        ends = torch.stack([answer - half, answer + half], -1).numpy()
        return ends[:, 0] if self.model_.squeezed else ends

    def score(self, X: Any, y: Any, sample_weight: Any = None, z: Any = None) -> float:
        """Return the coefficient of determination R²."""
        return float(r2_score(y, self.predict(X, z), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
