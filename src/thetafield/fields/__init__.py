"""Parameter fields θ(z): what every method gives back."""

from thetafield.fields.base import ParameterField

__all__ = ["ParameterField"]
