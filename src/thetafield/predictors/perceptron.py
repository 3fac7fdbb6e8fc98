"""The plain multilayer perceptron that heads, coders, descriptor encoders and discriminators are made of."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def perceptron(widths: Sequence[int], activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return linear layers between the given widths with an activation between them and none at the end.

    >>> len(perceptron([2, 50, 50, 2]))
    5
    """
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])
