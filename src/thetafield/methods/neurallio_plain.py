"""T-Plain: NeuralLio with an MLP in place of the Lie transport."""

from thetafield.methods.base import METHODS
from thetafield.methods.neurallio_paper import NeuralLioPaper
from thetafield.methods.space import LR, Choice


@METHODS.register("neurallio-plain")
class NeuralLioPlain(NeuralLioPaper):
    """The ablation T-Plain: an MLP maps (z_i, z_j, e_i) to e_j. Same options, loss and schedule as the paper's."""

    name = "neurallio-plain"
    title = "NeuralLio, T-Plain"
    transport = "plain"
    space = {"neighbours": Choice((3, 5, 8)), "gate": Choice((True, False)), "lr": LR}
