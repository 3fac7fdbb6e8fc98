"""FiLM: one model whose hidden units are scaled and shifted by the descriptor."""

from thetafield.errors import OptionError
from thetafield.fields.film import FilmField
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.reading import ReadingMethod
from thetafield.methods.space import LR, Choice
from thetafield.options import Count, NonNegative, Positive


@METHODS.register("film")
class Film(ReadingMethod[FilmField]):
    """Pooled risk of a head whose hidden units become (1 + γ(z)) u + β(z), γ and β from a shallow perceptron of z.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        hidden: Widths of the perceptron that reads z.
        lr: Adam's step size, falling to zero by a cosine.
        weight_decay: L2 coefficient.

    Reference:
        Perez et al., *FiLM: Visual Reasoning with a General Conditioning Layer*, AAAI 2018 (arXiv 1709.07871).
    """

    name = "film"
    title = "FiLM"
    reference = "Perez et al., 2018"
    needs = Needs(descriptor=True)
    space = {"lr": LR, "hidden": Choice(((32, 32), (64, 64), (128, 128)))}

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        hidden: tuple[Count, ...] = (32, 32),
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        layers = [(w.start, w.stop, b.start, b.stop) for w, b in self.predictor.hidden_layers]
        if not layers or not hidden:
            raise OptionError("FiLM needs a head with at least one hidden layer, and at least one width in hidden.")
        self.learned = FilmField(problem.domains.z.shape[1], self.predictor.dim, layers, hidden)
        self.learned.theta.data.copy_(self.predictor.start)
