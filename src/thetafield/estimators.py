"""The scikit-learn face: fit on rows with descriptors, predict for any descriptor."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from thetafield.data.arrays import as_numbers, column_names, to_numpy
from thetafield.data.domains import DomainSet
from thetafield.data.table import as_arrow, is_table
from thetafield.errors import DataError, OptionError
from thetafield.evaluation.choosing import train_chosen
from thetafield.fields.model import FieldModel
from thetafield.fields.storage import load_model, save_model
from thetafield.methods.base import METHODS, Loss
from thetafield.options import checked
from thetafield.training.train import pick_device, train_field


class _FieldEstimator(BaseEstimator):
    """What the classifier and the regressor share."""

    def __init__(
        self,
        method: str = "neurallio",
        *,
        options: dict[str, Any] | None = None,
        predictor: str = "mlp",
        predictor_options: dict[str, Any] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.options = options
        self.predictor = predictor
        self.predictor_options = predictor_options
        self.device = device
        self.random_state = random_state

    def _fit(self, X: np.ndarray, y: np.ndarray, z: Any, domain: Any, loss: Loss | None) -> None:
        features = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        classification = isinstance(self, ClassifierMixin)
        domains = DomainSet.from_arrays(X, y, domain=domain, z=z, classification=classification, features=features)
        self._fit_domains(domains, loss, described=z is not None or domain is not None, single_target=np.ndim(y) == 1)

    def _fit_domains(
        self, domains: DomainSet, loss: Loss | None, described: bool = True, single_target: bool = True
    ) -> None:
        checked(METHODS[self.method], self.options or {}, self.method)  # said even where the field is constant
        needs = METHODS[self.method].needs
        if domains.classification != isinstance(self, ClassifierMixin):
            kind = "classes: use FieldClassifier" if domains.classification else "numbers: use FieldRegressor"
            raise DataError(f"The target of these domains is {kind}.")
        self.n_features_in_ = domains.x.shape[1]
        # Without descriptors and domains there is nothing for a field to depend on: the pooled model is the field.
        pooled = not described and (needs.descriptor or needs.ordered or needs.min_domains > 1)
        method = "erm" if pooled else self.method
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        train = partial(
            train_field,
            method=method,
            seed=seed,
            predictor=self.predictor,
            predictor_options=self.predictor_options,
            loss=loss,
            ordered=domains.z.shape[1] == 1,  # one number is an order, if the method asks for one
            standardise=True,
            single_target=single_target and domains.num_outputs == 1,
            device=self.device,
        )
        trained, choice = train_chosen(domains, method, train, seed=seed, given={} if pooled else self.options or {})
        self.choice_ = None if choice is None else choice.record()  # what held-out training domains decided
        self.model_ = trained.model
        self.history_ = trained.history
        self.relevance_ = trained.model.relevance()

    def _descriptors(self, z: Any, num_rows: int | None) -> Tensor:
        """Return descriptors as a tensor: one per row, or one for all rows."""
        names = self.model_.recipe.descriptors
        if self.model_.encoder is not None and names and z is not None:
            z = self.model_.encoder.raw_descriptors(z)
        if not names:
            if z is not None:
                raise DataError("z was given, but the field was fitted without descriptors: fit it with z first.")
            return torch.zeros(num_rows or 1, 0)
        if z is None:
            raise DataError(f"This field was fitted with descriptors ({', '.join(names)}): pass z with those columns.")
        columns = column_names(z)
        unnamed = tuple(f"z{i}" for i in range(len(names)))
        if columns is not None and names != unnamed and columns != names:
            raise DataError(f"z has columns {', '.join(columns)}, but {', '.join(names)} were expected: give those.")
        if hasattr(z, "loc") and np.ndim(z) == 1 and set(map(str, z.index)) == set(names):
            z = z.set_axis(z.index.map(str)).loc[list(names)]  # a row of a data frame, by name and not by position
        # One vector is one descriptor for all rows; where there is one coordinate it is that of each row, as in fit.
        if np.ndim(z) == 0:
            z = [z]
        elif np.ndim(z) == 1 and len(names) > 1:
            z = to_numpy(z, "z")[None]
        table = as_numbers(z, "z", names=names, axes=2)
        if table.shape[1] != len(names):
            raise DataError(
                f"z has {table.shape[1]} columns, but the field was fitted with {len(names)} ({', '.join(names)}): "
                "give one number for each."
            )
        if num_rows is not None and len(table) not in (1, num_rows):
            raise DataError(f"z has {len(table)} rows, but X has {num_rows}: give one z per row, or one for all.")
        values = torch.tensor(table, dtype=torch.float32)
        return values.expand(num_rows, -1) if num_rows is not None and len(table) == 1 else values

    def _outputs(self, X: Any, z: Any) -> np.ndarray:
        check_is_fitted(self)
        encoder = self.model_.encoder
        if encoder is not None and is_table(X):
            table = as_arrow(X)
            if z is None and encoder.descriptors:  # the same raw columns as in fitting hold the descriptors too
                z = table
            X = encoder.inputs(table)
        columns, features = column_names(X), self.model_.recipe.features
        # A fitted estimator leaves names to scikit-learn; a loaded field takes arrays too, and tables by their columns.
        if not hasattr(self, "feature_names_in_") and columns is not None and features is not None:
            if columns != features:
                raise DataError(f"X has columns {', '.join(columns)}, but {', '.join(features)} were expected.")
            X = to_numpy(X, "X")
        X = validate_data(self, X, reset=False, allow_nd=True, dtype=[np.float64, np.float32])
        rows = torch.from_numpy(np.require(X, requirements=["C", "W"]))  # torch warns of arrays it must not write to
        return self.model_.row_outputs(rows, self._descriptors(z, len(X))).cpu().numpy()

    def model_at(self, z: Any = None) -> nn.Module:
        """Return the model of one descriptor as an ordinary module: raw columns in, logits or targets out."""
        check_is_fitted(self)
        descriptor = self._descriptors(z, None)
        if len(descriptor) != 1:
            raise DataError(f"model_at gives the model of one descriptor, but z has {len(descriptor)} rows: pass one.")
        return self.model_.model_at(descriptor[0])

    def field_(self, z: Any) -> Tensor:
        """Return θ(z) of shape (..., D) for descriptors of shape (..., d) in one batched call."""
        check_is_fitted(self)
        grid = to_numpy(z, "z")
        flat = self._descriptors(z if grid.ndim == 2 else grid.reshape(-1, grid.shape[-1]), None)
        return self.model_.theta(flat.reshape(grid.shape))

    def trust(self, z: Any) -> np.ndarray:
        """Return trust in [0, 1] for each descriptor: low where θ(z) should not be believed."""
        check_is_fitted(self)
        scaled = self.model_.scaler(self._descriptors(z, None))
        return self.model_.trust(scaled).numpy()

    def save(self, path: str | Path) -> None:
        """Write the fitted field into a folder (safetensors and JSON); :func:`load_field` reads it."""
        check_is_fitted(self)
        save_model(self.model_, Path(path))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


class FieldClassifier(ClassifierMixin, _FieldEstimator):
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

    def score(self, X: Any, y: Any, sample_weight: Any = None, z: Any = None) -> float:
        """Return the accuracy."""
        return float(accuracy_score(y, self.predict(X, z), sample_weight=sample_weight))


class FieldRegressor(RegressorMixin, _FieldEstimator):
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
    ) -> None:
        super().__init__(
            method,
            options=options,
            predictor=predictor,
            predictor_options=predictor_options,
            device=device,
            random_state=random_state,
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

    def score(self, X: Any, y: Any, sample_weight: Any = None, z: Any = None) -> float:
        """Return the coefficient of determination R²."""
        return float(r2_score(y, self.predict(X, z), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


def load_field(path: str | Path, device: str = "auto") -> FieldClassifier | FieldRegressor:
    """Read a saved field as a fitted estimator.

    Args:
        path: Folder written by `save` or by `thetafield train`.
        device: auto, cpu or cuda.

    Raises:
        FormatError: The folder is damaged, altered, or of a newer format.
    """
    model: FieldModel = load_model(Path(path)).to(pick_device(device))
    recipe = model.recipe
    estimator: FieldClassifier | FieldRegressor
    if model.classes is not None:
        estimator = FieldClassifier(recipe.method, device=device)
        estimator.classes_ = model.classes
    else:
        estimator = FieldRegressor(recipe.method, loss=recipe.loss, device=device)
    estimator.set_params(
        options=dict(recipe.options), predictor=recipe.predictor, predictor_options=dict(recipe.predictor_options)
    )
    estimator.model_ = model
    estimator.n_features_in_ = recipe.input_shape[0]
    estimator.relevance_ = model.relevance()
    return estimator
