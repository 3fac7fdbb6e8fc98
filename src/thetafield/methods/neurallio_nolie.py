"""T-noLie: NeuralLio with a raw linear operator in place of the exponential."""

from thetafield.methods.base import METHODS
from thetafield.methods.neurallio_paper import NeuralLioPaper
from thetafield.methods.space import LR, Choice


@METHODS.register("neurallio-nolie")
class NeuralLioNoLie(NeuralLioPaper):
    """The ablation T-noLie: the field network reads Δz and its matrix acts without the exponential."""

    name = "neurallio-nolie"
    title = "NeuralLio, T-noLie"
    transport = "linear"
    space = {"neighbours": Choice((3, 5, 8)), "gate": Choice((True, False)), "lr": LR}
