"""Networks of linear layers as the page runs them."""

from itertools import pairwise
from typing import Any

from torch import nn

from thetafield.explorer.arrays import Arrays
from thetafield.predictors.base import Predictor


def describe_perceptron(network: nn.Module, arrays: Arrays) -> dict[str, Any]:
    """Return the layers of a perceptron with ReLU between them, and whether one stands at the end."""
    parts = list(network.modules())[1:] or [network]
    layers = [
        {"weight": arrays.add(part.weight), "bias": None if part.bias is None else arrays.add(part.bias)}
        for part in parts
        if isinstance(part, nn.Linear)
    ]
    return {"layers": layers, "relu_last": isinstance(parts[-1], nn.ReLU)}


def describe_head(predictor: Predictor) -> dict[str, Any] | None:
    """Return the widths of a head that the page can run, with its lift; None where it is no perceptron.

    Example:
        >>> from thetafield.predictors.mlp import mlp
        >>> describe_head(mlp((2,), 3, hidden=(8,)))
        {'widths': [2, 8, 3], 'lift': None}
    """
    template = predictor.template
    layers = list(template) if isinstance(template, nn.Sequential) else [template]
    if isinstance(layers[0], nn.Flatten):
        layers = layers[1:]
    if predictor.lift is not None:
        layers = [*layers[:-2], layers[-1]]
    linear = [layer for layer in layers if type(layer) is nn.Linear and layer.bias is not None]
    # Layers with ReLU between them; before a lift there is one too, which the page knows.
    between = [layer for layer in layers if type(layer) is nn.ReLU]
    if len(linear) + len(between) != len(layers) or len(between) != len(linear) - 1:
        return None
    widths = [linear[0].in_features, *(layer.out_features for layer in linear)]
    if sum((a + 1) * b for a, b in pairwise(widths)) != predictor.dim:
        return None  # a layer that occurs twice has its parameters in θ once
    return {"widths": widths, "lift": predictor.lift}
