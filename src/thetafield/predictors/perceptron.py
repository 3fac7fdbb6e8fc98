"""The plain multilayer perceptron that heads, coders, descriptor encoders and discriminators are made of."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def perceptron(widths: Sequence[int], activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return linear layers between the given widths with an activation between them and none at the end.

    >>> len(perceptron([2, 50, 50, 2]))
    5
    """
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


def layers_of(theta: Tensor, widths: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Return views of θ, shape (b, D), as weights (b, out, in) and biases (b, out) of a perceptron's layers."""
    layers, start = [], 0
    for before, after in pairwise(widths):
        middle, end = start + before * after, start + (before + 1) * after
        layers.append((theta[:, start:middle].unflatten(1, (after, before)), theta[:, middle:end]))
        start = end
    return layers


class _Perceptrons(torch.autograd.Function):
    """Samples lie along the last axis, which is the long one, and gradients are masked in place."""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, x: Tensor, widths: tuple[int, ...]) -> Tensor:
        states = [x.mT.contiguous()]
        for weight, bias in layers_of(theta, widths):
            states.append(torch.baddbmm(bias[:, :, None], weight, states[-1]))
            if len(states) < len(widths):
                states[-1].relu_()
        *kept, outputs = states
        ctx.save_for_backward(theta, *kept)
        ctx.widths = widths
        return outputs.mT

    @staticmethod
    @once_differentiable
    # pyrefly: ignore[bad-override]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        theta, *states = ctx.saved_tensors
        to_theta, gradient = torch.empty_like(theta), gradient.mT
        layers = zip(layers_of(theta, ctx.widths), layers_of(to_theta, ctx.widths), states, strict=True)
        for number, ((weight, _), (to_weight, to_bias), state) in reversed(list(enumerate(layers))):
            to_weight.copy_(gradient @ state.mT)
            torch.sum(gradient, -1, out=to_bias)
            if number or ctx.needs_input_grad[1]:
                gradient = weight.mT @ gradient
            if number:
                gradient = torch.ops.aten.threshold_backward.grad_input(gradient, state, 0, grad_input=gradient)
        return to_theta, gradient.mT if ctx.needs_input_grad[1] else None, None


def perceptrons(theta: Tensor, x: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Return the outputs of many perceptrons with ReLU, each on samples of its own.

    Args:
        theta: Parameters of b perceptrons, layer by layer, weight before bias, shape (b, D).
        x: Inputs, shape (b, n, features).
        widths: Features, hidden widths, outputs.

    Example:
        >>> perceptrons(torch.zeros(3, 17), torch.ones(3, 5, 2), (2, 3, 2)).shape
        torch.Size([3, 5, 2])
    """
    return _Perceptrons.apply(theta, x, widths)
