"""Boosted trees on the inputs alone."""

from thetafield.methods.base import METHODS, Needs
from thetafield.methods.trees import Trees


@METHODS.register("trees-x")
class TreesX(Trees):
    """As `trees`, without the descriptor: what the inputs alone can tell. Same options."""

    name = "trees-x"
    title = "Trees on x"
    needs = Needs()
    read_descriptor = False
