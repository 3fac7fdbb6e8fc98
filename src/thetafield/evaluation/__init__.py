"""Scores on unseen domains, and the laws of a transport."""

from thetafield.evaluation.laws import field_laws
from thetafield.evaluation.scores import Scores, evaluate

__all__ = ["Scores", "evaluate", "field_laws"]
