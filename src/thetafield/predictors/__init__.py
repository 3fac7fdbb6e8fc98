"""Predictors g(x; θ) = head_θ(backbone(x)), found by the registry."""

from thetafield.predictors.base import PREDICTORS, ParameterSpec, Predictor

__all__ = ["PREDICTORS", "ParameterSpec", "Predictor"]
