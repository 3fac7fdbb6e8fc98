"""NeuralLio as we train it: the paper's model with shuffled, larger blocks and a cosine schedule."""

from typing import Literal

from thetafield.methods.base import METHODS, Problem
from thetafield.methods.neurallio_paper import NeuralLioPaper
from thetafield.options import Count, Natural, NonNegative, Positive


@METHODS.register("neurallio")
class NeuralLio(NeuralLioPaper):
    """The paper's model and loss; blocks are large and drawn anew every epoch, and the step size falls to zero.

    Args:
        problem: The training side.
        epochs: Passes over all anchors.
        block: Anchors per step.
        samples: Samples drawn from each domain per step; 0 takes all.
        neighbours: k, beside the anchor itself; there must be more domains than that.
        chart_weights: Weight of each descriptor coordinate in the distance that charts go by; None weighs all alike.
        gate: Whether the descriptor gate is used.
        latent_dim: m.
        num_generators: r; None takes one per descriptor coordinate.
        generators: "field" as in the paper; "constant", or "commuting" for laws that hold by construction.
        hidden: Width of the field network.
        coder: "perceptron" as in the paper, or "lean", a linear basis with small perceptrons.
        widths: Hidden widths of the perceptron coder.
        rank: Number of directions of the lean coder.
        lr: Largest step size of Adam.
        weight_decay: L2 coefficient.

    Reference:
        Cai et al., *Continuous Domain Generalization*, NeurIPS 2025.
    """

    name = "neurallio"
    title = "NeuralLio"

    def __init__(
        self,
        problem: Problem,
        *,
        epochs: Count = 600,
        block: Count = 25,
        samples: Natural = 250,
        neighbours: Count = 5,
        chart_weights: tuple[NonNegative, ...] | None = None,
        gate: bool = True,
        latent_dim: Count = 32,
        num_generators: Count | None = None,
        generators: Literal["field", "constant", "commuting"] = "field",
        hidden: Count = 128,
        coder: Literal["perceptron", "lean"] = "lean",
        widths: tuple[Count, ...] = (1024, 512, 128),
        rank: Count = 64,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 1e-4,
    ) -> None:
        super().__init__(
            problem,
            epochs=epochs,
            block=block,
            shuffle=True,
            samples=samples,
            neighbours=neighbours,
            chart_weights=chart_weights,
            gate=gate,
            latent_dim=latent_dim,
            num_generators=num_generators,
            generators=generators,
            hidden=hidden,
            coder=coder,
            widths=widths,
            rank=rank,
            lr=lr,
            schedule="cosine",
            weight_decay=weight_decay,
            keep="last",
        )
