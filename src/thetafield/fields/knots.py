"""Coordinates told interval by interval, so that a network can treat one part of Z apart from the next."""

import torch
from torch import Tensor


def knots_between(z: Tensor, count: int) -> Tensor:
    """Return edges of `count` intervals for each coordinate, shape (d, count + 1): quantiles of its distinct values.

    >>> knots_between(torch.tensor([[0.0], [1.0], [1.0], [4.0]]), 2)
    tensor([[0., 1., 4.]])
    """
    steps = torch.linspace(0, 1, count + 1, dtype=z.dtype, device=z.device)
    edges = torch.stack([torch.quantile(torch.unique(column), steps) for column in z.unbind(1)])
    # A coordinate that never changes says nothing; any width keeps it finite.
    return torch.where(edges[:, :1] < edges[:, -1:], edges, edges[:, :1] + steps)


def piecewise(z: Tensor, edges: Tensor) -> Tensor:
    """Return, for each coordinate and interval, how far the coordinate has come in it: 0 before it, 1 past it.

    Before the first and past the last edge it goes on in a straight line. Distinct descriptors stay distinct, and any
    continuous function that bends at the edges alone is linear in the result.

    Args:
        z: Descriptors, shape (b, d).
        edges: Edges of k intervals for each coordinate, shape (d, k + 1).

    Example:
        >>> piecewise(torch.tensor([[2.5]]), torch.tensor([[0.0, 1.0, 4.0]]))
        tensor([[1.0000, 0.5000]])
    """
    way = (z[:, :, None] - edges[:, :-1]) / (edges[:, 1:] - edges[:, :-1])
    low, high = torch.zeros_like(edges[:, 1:]), torch.ones_like(edges[:, 1:])
    low[:, 0], high[:, -1] = -torch.inf, torch.inf
    return way.clamp(low, high).flatten(1)
