"""The anchors nearest to each descriptor, found exactly, in the way that suits their number and width."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy.spatial import KDTree
from torch import Tensor

from thetafield.typing import Anchors, Descriptors

CELLS = 2**24  # distances held at once
WIDEST_TREE = 10  # beyond this width a tree visits most of its points
# A tree saves most of the distances but has to be built and asked on the host: it pays for b queries of N anchors where
# bN > REPAYS · (b + N). Measured on two cores; for a GPU an estimate, at sizes where either way takes fractions of a
# second.
REPAYS = {"cpu": 2**9, "cuda": 2**14}
PAIRS = 2**20  # distances that are formed one by one in a few milliseconds
MOST_TIES = 2**8  # equally near places among which the lowest index is looked for
SPARE = 8  # candidates beyond those asked for, among which a quick search looks exactly
EXACT = "donot_use_mm_for_euclid_dist"  # the quick form, by a matrix product, loses digits for close points


@dataclass(frozen=True, eq=False)
class Distinct:
    """The different rows of a matrix in lexicographic order, and which rows hold each.

    Args:
        points: The M different rows, shape (M, d).
        group: Which of them each row holds, shape (N,).
        members: Rows sorted by group, each group's in rising order, shape (N,).
        starts: Where each group begins in `members`, shape (M,).
        sizes: How many rows hold each, shape (M,).

    Example:
        >>> distinct = Distinct.of(torch.tensor([[3.0, 1.0], [2.0, 5.0], [3.0, 1.0]]))
        >>> distinct.points.tolist(), distinct.group.tolist(), distinct.members.tolist()
        ([[2.0, 5.0], [3.0, 1.0]], [1, 0, 1], [1, 0, 2])
    """

    points: Tensor
    group: Tensor
    members: Tensor
    starts: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, rows: Anchors) -> "Distinct":
        """Sort by one column after the other: a million rows take a quarter of the time of `torch.unique`."""
        members = torch.arange(len(rows), device=rows.device)
        for column in reversed(rows.unbind(1)):
            members = members[torch.argsort(column[members], stable=True)]
        ordered = rows[members]
        first = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        first[1:] = (ordered[1:] != ordered[:-1]).any(1)
        group = torch.empty_like(members)
        group[members] = first.cumsum(0) - 1
        starts = first.nonzero()[:, 0]
        sizes = torch.diff(starts, append=starts.new_tensor([len(rows)]))
        return cls(ordered[first], group, members, starts, sizes)


def nearest(query: Descriptors, anchors: Anchors, count: int = 1) -> tuple[Tensor, Tensor]:
    """Return (distances, indices) of the `count` nearest anchors of each query, shape (b, count), nearest first.

    Few pairs are all measured, where the descriptors lie. Many pairs of narrow descriptors, ten numbers at most,
    go to a k-d tree on the host: it is exact, needs N log N time and linear memory, and finds the neighbours of a
    million points in seconds, while a GPU would need 10¹² distances. In wide descriptors a tree has to visit most
    points, and a matrix product finds candidates instead. All ways are exact, and distances are differentiable. Of
    equally near anchors a single one (`count` = 1) is the one with the lowest index.
    """
    with torch.no_grad():
        index = _way(query, anchors, count)(query, anchors, count)
    return _distances(query, anchors, index), index


def _way(query: Tensor, anchors: Tensor, count: int) -> Callable[[Tensor, Tensor, int], Tensor]:
    width, pairs = query.shape[1], len(query) * len(anchors)
    if width > WIDEST_TREE:
        return by_product if pairs > PAIRS and len(anchors) > count + SPARE else by_distance
    repays = REPAYS["cpu" if query.device.type == "cpu" else "cuda"]
    return by_tree if width and pairs > repays * (len(query) + len(anchors)) else by_distance


def _distances(query: Tensor, anchors: Tensor, index: Tensor) -> Tensor:
    return torch.cdist(query[:, None], anchors[index], compute_mode=EXACT)[:, 0]


def by_distance(query: Descriptors, anchors: Anchors, count: int) -> Tensor:
    """Measure every pair, in pieces, so that memory stays bounded."""
    found = []
    for part in query.split(max(1, CELLS // max(1, len(anchors)))):
        distance = torch.cdist(part, anchors, compute_mode=EXACT)
        # argmin, unlike topk, gives ties to the lowest index
        near = distance.argmin(1, keepdim=True) if count == 1 else distance.topk(count, largest=False).indices
        found.append(near)
    return torch.cat(found)


def by_product(query: Descriptors, anchors: Anchors, count: int) -> Tensor:
    """Find candidates by ‖a‖² − 2 q·a, one matrix product for all pairs of a piece, and measure those exactly.

    Where rounding may have hidden a neighbour from the candidates, all pairs of that query are measured.
    """
    centre = anchors.mean(0)  # small norms keep rounding small
    shifted = anchors - centre
    squares = shifted.square().sum(1)
    longest = squares.max().sqrt()
    precise = query.dtype != torch.float32 or torch.get_float32_matmul_precision() == "highest"
    unit = torch.finfo(query.dtype).eps if precise else 2**-7  # elsewhere products may be formed in bfloat16
    found = []
    for part in query.split(max(1, CELLS // len(anchors))):
        moved = part - centre
        quick, candidates = torch.addmm(squares, moved, shifted.T, alpha=-2).topk(count + SPARE, largest=False)
        candidates = candidates.sort(1).values  # ties go to the lowest index
        distance, order = _distances(part, anchors, candidates).sort(dim=1, stable=True)
        index = candidates.gather(1, order[:, :count])
        norm = moved.square().sum(1)
        slack = 2 * unit * (query.shape[1] + 4) * (norm.sqrt() + longest).square()
        doubtful = ~(quick[:, -1] + norm - slack > distance[:, count - 1].square())
        index[doubtful] = by_distance(part[doubtful], anchors, count)
        found.append(index)
    return torch.cat(found)


def by_tree(query: Descriptors, anchors: Anchors, count: int) -> Tensor:
    """Ask a k-d tree of the different anchors, on the host; ties go to the lowest index."""
    distinct = Distinct.of(anchors.detach().cpu().double())
    tree = KDTree(distinct.points.numpy())
    points = query.detach().cpu().double().nan_to_num(0, 0, 0)  # what lies nowhere may be given any neighbours
    return _ask(tree, distinct, points, count, count + 1).to(query.device)


def _ask(tree: KDTree, distinct: Distinct, points: Tensor, count: int, width: int) -> Tensor:
    """Return the `count` nearest anchors of each point, from its `width` nearest places."""
    width = min(width, len(distinct.points))
    # Anchors that share a place are equally near: of each place the first `count` are enough.
    copy = torch.arange(min(count, int(distinct.sizes.max())))
    found = []
    for part in points.split(max(1, CELLS // (width * len(copy)))):
        # As many threads as torch may use: a test, or a trial beside others, has one.
        answer = tree.query(part.numpy(), range(1, width + 1), workers=torch.get_num_threads())
        distance, place = map(torch.from_numpy, answer)
        size = distinct.sizes[place][..., None]
        anchor = distinct.members[distinct.starts[place][..., None] + torch.minimum(copy, size - 1)]
        each = torch.where(copy < size, distance[..., None], torch.inf)
        by_index, order = anchor.flatten(1).sort(1)
        order = each.flatten(1).gather(1, order).sort(dim=1, stable=True).indices
        index = by_index.gather(1, order[:, :count])
        # The last one asked for is as near as the last one found, so that others may be as near: more are asked for.
        tied = distance[:, -1] == distance[:, min(count, width) - 1]
        if width < min(len(distinct.points), max(count, MOST_TIES)) and tied.any():
            index[tied] = _ask(tree, distinct, part[tied], count, 2 * width)
        found.append(index)
    return torch.cat(found)
