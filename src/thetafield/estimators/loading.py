"""A saved field as a fitted estimator."""

from pathlib import Path

from thetafield.estimators.classifier import FieldClassifier
from thetafield.estimators.regressor import FieldRegressor
from thetafield.fields.storage import read_model
from thetafield.training.train import pick_device


def load_field(path: str | Path, device: str = "auto") -> FieldClassifier | FieldRegressor:
    """Read a saved field as a fitted estimator.

    Args:
        path: Folder written by `save` or by `thetafield train`.
        device: auto, cpu or cuda.

    Raises:
        FormatError: The folder is damaged, altered, or of a newer format.
    """
    model = read_model(Path(path)).to(pick_device(device))
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
