"""What the classifier and the regressor share: rows with descriptors in, a fitted field inside."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from thetafield.data.arrays import as_numbers, column_names, to_numpy
from thetafield.data.descriptors import check_descriptors
from thetafield.data.domains import DomainSet
from thetafield.data.table import as_arrow, is_table
from thetafield.errors import DataError, NeedError
from thetafield.evaluation.choosing import train_chosen
from thetafield.fields.doubt import trust_at
from thetafield.fields.model import Model
from thetafield.fields.storage import save_model
from thetafield.methods.base import METHODS, Loss
from thetafield.options import checked
from thetafield.training.display import training_display
from thetafield.training.train import train_field


class FieldEstimator(BaseEstimator):
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
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.options = options
        self.predictor = predictor
        self.predictor_options = predictor_options
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

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
        check_descriptors(domains)
        self.n_features_in_ = domains.x.shape[1]
        # Without descriptors and domains there is nothing for a field to depend on: the pooled model is the field.
        pooled = not described and (needs.reads or needs.min_domains > 1)
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
        given = {} if pooled else self.options or {}
        with training_display(method) if self.verbose else nullcontext() as report:
            trained, choice = train_chosen(domains, method, train, seed=seed, given=given, report=report)
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

    def _rows(self, X: Any, z: Any) -> tuple[Tensor, Tensor]:
        """Return inputs and a descriptor for each of them, from arrays or tables."""
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
        return rows, self._descriptors(z, len(X))

    def _outputs(self, X: Any, z: Any) -> np.ndarray:
        rows, z = self._rows(X, z)
        return self.model_.row_outputs(rows, z).cpu().numpy()

    def _covering(self, coverage: float) -> tuple[Model, float]:
        """Return the model, and how strange the truth may look to it."""
        check_is_fitted(self)
        model = self.model_
        if model.conformal is None:
            raise NeedError(
                "Sets and intervals need held-out training domains: fit method 'neurallio' with its choice on "
                "(select=True, the default) on 12 domains or more, or load the field of a comparison."
            )
        return model, model.conformal.threshold(coverage)

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

    def trust(self, z: Any, X: Any = None) -> np.ndarray:
        """Return trust in [0, 1] for each descriptor: low where answers should not be believed.

        Where held-out training domains were looked at (by the choice of `neurallio`, or by a comparison), 1 means as
        good as on the easiest training domains, and 0 no better than a guess; otherwise it falls with the distance to
        the training domains.

        Args:
            z: Descriptors.
            X: Inputs without targets, of the domain that each row of z describes: they sharpen it, if it is calibrated.
        """
        check_is_fitted(self)
        if X is None:
            return trust_at(self.model_, self._descriptors(z, None)).numpy()
        rows, z = self._rows(X, z)
        return trust_at(self.model_, z, rows).numpy()

    def save(self, path: str | Path) -> None:
        """Write the fitted field into a folder (safetensors and JSON); :func:`load_field` reads it."""
        check_is_fitted(self)
        save_model(self.model_, Path(path))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
