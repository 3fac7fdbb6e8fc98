"""The scikit-learn face: fit on rows with descriptors, predict for any descriptor."""

from thetafield.estimators.classifier import FieldClassifier
from thetafield.estimators.loading import load_field
from thetafield.estimators.regressor import FieldRegressor

__all__ = ["FieldClassifier", "FieldRegressor", "load_field"]
