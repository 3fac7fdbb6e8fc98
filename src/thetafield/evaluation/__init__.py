"""Scores on unseen domains, selection on held-out training domains, and the laws of a transport."""

from thetafield.evaluation.laws import field_laws
from thetafield.evaluation.scores import Scores, evaluate
from thetafield.evaluation.selection import Draw, Selection, tune

__all__ = ["Draw", "Scores", "Selection", "evaluate", "field_laws", "tune"]
