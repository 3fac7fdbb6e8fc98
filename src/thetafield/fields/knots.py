"""Coordinates told interval by interval, so that a network can treat one part of Z apart from the next."""

import torch
from torch import Tensor, nn

NARROWEST = 8  # parts of an even interval that one has at least, however dense the domains are there


def knots_between(z: Tensor, count: int) -> Tensor:
    """Return edges of `count` intervals for each coordinate, shape (d, count + 1): quantiles of its distinct values.

    >>> knots_between(torch.tensor([[0.0], [1.0], [1.0], [4.0]]), 2)
    tensor([[0., 1., 4.]])
    """
    steps = torch.linspace(0, 1, count + 1, dtype=torch.double, device=z.device)
    edges = torch.stack([torch.quantile(torch.unique(column), steps) for column in z.double().unbind(1)])
    # A coordinate that never changes says nothing; any width keeps it finite.
    span = torch.where(edges[:, :1] < edges[:, -1:], edges[:, -1:] - edges[:, :1], 1.0)
    widths = edges.diff().maximum(span / (NARROWEST * count))
    widths = widths * span / widths.sum(1, keepdim=True)
    return torch.cat([edges[:, :1], edges[:, :1] + widths.cumsum(1)], 1).to(z.dtype)


def piecewise(z: Tensor, edges: Tensor) -> Tensor:
    """Return, for each coordinate and interval, how far the coordinate has come in it: 0 before it, 1 past it.

    Any continuous function that bends at the edges alone is linear in the result. Beyond them it goes on in a straight
    line, the measure of which is the whole range: the last interval may be narrow, and its slope steep.

    Args:
        z: Descriptors, shape (b, d).
        edges: Edges of k intervals for each coordinate, shape (d, k + 1).

    Example:
        >>> piecewise(torch.tensor([[2.5]]), torch.tensor([[0.0, 1.0, 4.0]]))
        tensor([[1.0000, 0.5000]])
    """
    low, high, others = edges[:, 0], edges[:, -1], edges.shape[1] - 2
    way = ((z[:, :, None] - edges[:, :-1]) / edges.diff()).clamp(0, 1)
    before, past = (low - z).clamp(min=0) / (high - low), (z - high).clamp(min=0) / (high - low)
    pad = nn.functional.pad
    return (way - pad(before[..., None], (0, others)) + pad(past[..., None], (others, 0))).flatten(1)
