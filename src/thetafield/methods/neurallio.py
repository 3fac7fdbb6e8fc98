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
        gate: Whether the descriptor gate is used.
        latent_dim: m.
        num_generators: r; None takes one per descriptor coordinate.
        generators: "field" as in the paper; "constant", or "commuting" for laws that hold by construction.
        hidden: Width of the field network.
        widths: Hidden widths of the coder.
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
        gate: bool = True,
        latent_dim: Count = 32,
        num_generators: Count | None = None,
        generators: Literal["field", "constant", "commuting"] = "field",
        hidden: Count = 128,
        widths: tuple[Count, ...] = (1024, 512, 128),
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
            gate=gate,
            latent_dim=latent_dim,
            num_generators=num_generators,
            generators=generators,
            hidden=hidden,
            widths=widths,
            lr=lr,
            schedule="cosine",
            weight_decay=weight_decay,
            keep="last",
        )
