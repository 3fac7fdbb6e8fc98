"""Conformance suites for new methods, transports, predictors and datasets, and slow oracles to compare with.

A plug-in author runs the suite that fits: `check_method("my-method")`, `check_dataset("my-data")`.
"""

from thetafield.testing.datasets import check_dataset
from thetafield.testing.methods import check_method
from thetafield.testing.predictors import check_predictor
from thetafield.testing.toys import toy_problem
from thetafield.testing.transports import check_transport

__all__ = ["check_dataset", "check_method", "check_predictor", "check_transport", "toy_problem"]
