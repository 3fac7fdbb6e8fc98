"""Charts: which training domains lie near which, as an edge list (Eq. 8 of the paper)."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from thetafield.errors import DataError
from thetafield.geometry.neighbours import Distinct, nearest
from thetafield.typing import Anchors, Edges, Indices, Neighbours


@dataclass(frozen=True, eq=False)
class Charts:
    """The neighbourhood of every anchor: itself first, then its k nearest, so that the identity is trained too.

    Args:
        neighbours: Domain indices, shape (N, k + 1); column 0 is the anchor.
    """

    neighbours: Neighbours

    @property
    def edges(self) -> Edges:
        """The same charts as pairs (source, target), shape (2, E)."""
        source = torch.arange(len(self.neighbours), device=self.neighbours.device)
        return torch.stack([source.repeat_interleave(self.neighbours.shape[1]), self.neighbours.flatten()])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(values)
        return values[index]

    @staticmethod
    @once_differentiable
    # pyrefly: ignore[bad-override]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        if not gradient.is_cuda:
            return gradient.new_zeros(ctx.rows, *gradient.shape[1:]).index_add_(0, index, gradient), None
        pick = torch.nn.functional.one_hot(index, ctx.rows).to(gradient)
        return (pick.mT @ gradient.flatten(1)).unflatten(1, gradient.shape[1:]), None


def gather_rows(values: Tensor, index: Indices) -> Tensor:
    """Return values[index], repeated rows included, with a backward pass that sums in a fixed order.

    The gradient of plain indexing adds repeated rows in whatever order the threads come by, and the same seed would
    not give the same bits. A product with the matrix that picks the rows always sums alike; a CPU adds in order.
    """
    return _Gather.apply(values, index) if values.requires_grad else values[index]


def knn_charts(z: Anchors, num_neighbours: int) -> Charts:
    """Return the charts of k nearest neighbours in Euclidean distance, each anchor itself included.

    Example:
        >>> knn_charts(torch.tensor([[0.0], [1.0], [3.0]]), 1).neighbours.tolist()
        [[0, 1], [1, 0], [2, 1]]
    """
    distinct = Distinct.of(z)
    count = len(distinct.points)
    if num_neighbours >= count:
        raise DataError(
            f"Charts of {num_neighbours} neighbours need at least {num_neighbours + 1} training domains, but there are "
            f"{count} with different descriptors: lower the option neighbours to {count - 1} or fewer."
        )
    # Neighbours are descriptors, not domains: a chart of domains that share one descriptor would teach no transport.
    # Of the domains at a neighbouring descriptor, anchors that share theirs take one each in turn.
    near = nearest(distinct.points, distinct.points, num_neighbours + 1)[1][:, 1:]
    own = torch.arange(len(z), device=z.device)
    rank = torch.empty_like(own)
    rank[distinct.members] = own - distinct.starts[distinct.group[distinct.members]]
    target = near[distinct.group]
    neighbours = distinct.members[distinct.starts[target] + rank[:, None] % distinct.sizes[target]]
    return Charts(torch.cat([own[:, None], neighbours], 1))


def random_charts(num_domains: int, num_neighbours: int, anchors: Indices) -> Neighbours:
    """Return neighbours drawn from all domains, each anchor itself first: transport without charts."""
    scores = torch.rand((len(anchors), num_domains), device=anchors.device)
    scores.scatter_(1, anchors[:, None], 2.0)
    return scores.topk(num_neighbours + 1, dim=1).indices


def partition_of_unity(distances: Float[Tensor, "b c"], bandwidth: float = math.inf) -> Float[Tensor, "b c-1"]:
    """Return the shares of the nearest anchors in an answer, from their distances in rising order, but the last one's.

    The last anchor sets the radius at which shares vanish, so that nothing jumps where one anchor takes the place of
    another: answers are continuous in z.

    Args:
        distances: To the c nearest anchors.
        bandwidth: How fast shares fall off before the radius, as a share of it.

    Returns:
        Shares of all but the last, which sum to one.

    Example:
        >>> partition_of_unity(torch.tensor([[1.0, 1.0, 2.0]])).tolist()
        [[0.5, 0.5]]
    """
    share = (distances[:, :-1] / distances[:, -1:].clamp_min(torch.finfo(distances.dtype).tiny)).clamp(max=1).square()
    weight = (1 - share).square() * torch.exp(-share / bandwidth**2)
    # Where all are equally far there is no radius: each counts alike.
    weight = weight + torch.finfo(weight.dtype).tiny
    return weight / weight.sum(1, keepdim=True)
