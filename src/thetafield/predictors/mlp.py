"""A multilayer perceptron as the whole predictor."""

from math import prod

from torch import nn

from thetafield.options import Count
from thetafield.predictors.base import PREDICTORS, Predictor
from thetafield.predictors.perceptron import perceptron


@PREDICTORS.register("mlp")
def mlp(input_shape: tuple[int, ...], num_outputs: int, *, hidden: tuple[Count, ...] = (50, 50)) -> Predictor:
    """Fully connected layers with ReLU; no backbone, every weight is part of θ.

    Args:
        input_shape: Shape of one sample; flattened where it has several axes.
        num_outputs: Number of classes or targets.
        hidden: Widths of the hidden layers; 50,50 is the paper's 2-Moons head.
    """
    flatten = [nn.Flatten(-len(input_shape))] if len(input_shape) > 1 else []
    return Predictor(nn.Sequential(*flatten, *perceptron([prod(input_shape), *hidden, num_outputs])))
