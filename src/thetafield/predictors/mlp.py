"""A multilayer perceptron as the whole predictor."""

from itertools import pairwise
from math import prod

from torch import nn

from thetafield.options import Count
from thetafield.predictors.base import PREDICTORS, Predictor


@PREDICTORS.register("mlp")
def mlp(input_shape: tuple[int, ...], num_outputs: int, *, hidden: tuple[Count, ...] = (50, 50)) -> Predictor:
    """Fully connected layers with ReLU; no backbone, every weight is part of θ.

    Args:
        input_shape: Shape of one sample; flattened where it has several axes.
        num_outputs: Number of classes or targets.
        hidden: Widths of the hidden layers; 50,50 is the paper's 2-Moons head.
    """
    layers: list[nn.Module] = [nn.Flatten(-len(input_shape))] if len(input_shape) > 1 else []
    widths = [prod(input_shape), *hidden]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    layers.append(nn.Linear(widths[-1], num_outputs))
    return Predictor(nn.Sequential(*layers))
