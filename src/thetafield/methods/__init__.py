"""Methods: ways to learn a parameter field, one file each, found by the registry."""

from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.phase import Phase, Player

__all__ = ["METHODS", "Method", "Needs", "Phase", "Player", "Problem"]
