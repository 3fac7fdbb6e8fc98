"""Lifts: fixed maps that a head's features pass through before its last layer."""

import torch
from torch import Tensor, nn

from thetafield.errors import OptionError, closest
from thetafield.predictors.base import Predictor

BOUND = 3.0


class Measurement(nn.Module):
    """The Koopman measurement G of TKNets: slices of the features squared, cubed, exponentiated, under cos and sin.

    Of m coordinates the first m/8 are squared, the next m/8 cubed, m/4 exponentiated, m/8 under the cosine, m/8 under
    the sine, the rest unchanged. Features are first bounded by 3·tanh(·/3): the exponential of free ones overflows.

    Example:
        >>> Measurement()(torch.zeros(8)).tolist()
        [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """

    def forward(self, features: Tensor) -> Tensor:
        """Return G(features), slice by slice along the last axis."""
        bounded = BOUND * torch.tanh(features / BOUND)
        width = features.shape[-1]
        eighth, quarter = width // 8, width // 4
        sizes = [eighth, eighth, quarter, eighth, eighth, width - 4 * eighth - quarter]
        square, cube, power, cosine, sine, same = bounded.split(sizes, dim=-1)
        return torch.cat([square**2, cube**3, power.exp(), cosine.cos(), sine.sin(), same], dim=-1)


LIFTS: dict[str, type[nn.Module]] = {"measurement": Measurement}


def lifted(predictor: Predictor, name: str) -> Predictor:
    """Return the predictor whose head has the lift called `name` before its last layer.

    θ keeps its length and its start; the backbone is the same module.

    >>> from thetafield.predictors.perceptron import perceptron
    >>> plain = Predictor(perceptron([2, 8, 3]))
    >>> lifted(plain, "measurement").dim == plain.dim
    True
    """
    if name not in LIFTS:
        raise OptionError(f"There is no lift {name!r}; {closest(name, LIFTS)}")
    head = predictor.head_module(predictor.start)
    layers = list(head) if isinstance(head, nn.Sequential) else []
    if len(layers) < 2 or not isinstance(layers[-1], nn.Linear):
        raise OptionError("This method needs a head that is a sequence of layers with a linear one at the end.")
    return Predictor(nn.Sequential(*layers[:-1], LIFTS[name](), layers[-1]), predictor.backbone, name)
