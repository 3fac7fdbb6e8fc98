"""Charts: which training domains lie near which, as an edge list (Eq. 8 of the paper)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.errors import DataError
from thetafield.typing import Anchors, Descriptors, Edges, Indices, Neighbours

CELLS = 2**24  # distances held at once


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


def gather_rows(values: Tensor, index: Indices) -> Tensor:
    """Return values[index], repeated rows included, with a backward pass that sums in a fixed order.

    The gradient of plain indexing adds repeated rows in whatever order the threads come by, and the same seed would
    not give the same bits. A product with the matrix that picks the rows is exact and always sums alike.
    """
    if not values.requires_grad:
        return values[index]
    pick = torch.nn.functional.one_hot(index, len(values)).to(values)
    return (pick @ values.flatten(1)).unflatten(1, values.shape[1:])


def nearest(query: Descriptors, anchors: Anchors, count: int = 1) -> tuple[Tensor, Tensor]:
    """Return (distances, indices) of the `count` nearest anchors of each query, shape (b, count), nearest first.

    Distances are formed in pieces, so that memory stays bounded.
    """
    rows = max(1, CELLS // max(1, len(anchors)))
    # The exact form of the distance: the quick one by a matrix product loses digits for close points.
    pieces = [torch.cdist(part, anchors, compute_mode="donot_use_mm_for_euclid_dist") for part in query.split(rows)]
    if count == 1:  # argmin, unlike topk, gives ties to the lowest index
        index = torch.cat([piece.argmin(1, keepdim=True) for piece in pieces])
        return torch.cat([piece.amin(1, keepdim=True) for piece in pieces]), index
    found = [piece.topk(count, dim=1, largest=False) for piece in pieces]
    return torch.cat([f.values for f in found]), torch.cat([f.indices for f in found])


def knn_charts(z: Anchors, num_neighbours: int) -> Charts:
    """Return the charts of k nearest neighbours in Euclidean distance, each anchor itself included.

    Example:
        >>> knn_charts(torch.tensor([[0.0], [1.0], [3.0]]), 1).neighbours.tolist()
        [[0, 1], [1, 0], [2, 1]]
    """
    distinct, group, sizes = torch.unique(z, dim=0, return_inverse=True, return_counts=True)
    if num_neighbours >= len(distinct):
        raise DataError(
            f"Charts of {num_neighbours} neighbours need at least {num_neighbours + 1} training domains, but there are "
            f"{len(distinct)} with different descriptors: lower the option neighbours to {len(distinct) - 1} or fewer."
        )
    # Neighbours are descriptors, not domains: a chart of domains that share one descriptor would teach no transport.
    # Of the domains at a neighbouring descriptor, anchors that share theirs take one each in turn.
    near = nearest(distinct, distinct, num_neighbours + 1)[1][:, 1:]
    members = torch.argsort(group, stable=True)
    starts = sizes.cumsum(0) - sizes
    rank = torch.empty_like(group)
    rank[members] = torch.arange(len(z), device=z.device) - starts[group[members]]
    target = near[group]
    neighbours = members[starts[target] + rank[:, None] % sizes[target]]
    return Charts(torch.cat([torch.arange(len(z), device=z.device)[:, None], neighbours], 1))


def random_charts(num_domains: int, num_neighbours: int, anchors: Indices, generator: torch.Generator) -> Neighbours:
    """Return neighbours drawn from all domains, each anchor itself first: transport without charts."""
    scores = torch.rand((len(anchors), num_domains), generator=generator)
    scores[torch.arange(len(anchors)), anchors.cpu()] = 2.0
    return scores.topk(num_neighbours + 1, dim=1).indices
