"""Descriptors that go round: an angle, an hour or a season comes back to where it was, and so do the models.

Nobody says so beforehand, and a descriptor may well run on past a whole turn. But transfer tells: domains that are a
period apart serve each other as well as neighbours do.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.geometry.transfer import SPARSITY, Pairs, descended

FEWEST_TURNS, MOST_TURNS, TURNS = 0.75, 12.0, 181  # over the range of the descriptors, and how many are tried
HEIGHTS = (0.25, 1.0, 4.0, 16.0)  # squared distance across the circle, where transfer falls by e per unit
SEARCHED = 2500  # pairs, at most, on which they are tried
PEAKS = 6  # of the search, from which a descent begins
FLATTEST = 0.1  # squared distance across the circle: below, only the ratio to other weights tells
FINE = 0.2  # radians over the range that a step of the descent at most adds to the phase, in steps of its size


def wound(z: Tensor, directions: Tensor, frequencies: Tensor, phases: Tensor) -> Tensor:
    """Return s = U z, shape (..., q), where coordinates with a frequency ω go round as sin(ω s + phase) / ω.

    A sine and a cosine of one direction, whose phase is π/2, make a circle on which small steps have their length.

    Example:
        >>> two = torch.ones(2, 1)
        >>> hours = torch.tensor([[0.0], [24.0]])
        >>> around = wound(hours, two, 2 * torch.pi / 24 * torch.ones(2), torch.tensor([0.0, torch.pi / 2]))
        >>> bool(torch.allclose(around[0], around[1], atol=1e-5))
        True
    """
    straight = z @ directions.T
    rounded = torch.sin(frequencies * straight + phases) / frequencies.clamp_min(1e-12)
    return torch.where(frequencies > 0, rounded, straight)


@dataclass(frozen=True, eq=False)
class Chart:
    """Squared distances ‖L Δ‖² + (a · 2 sin(v·Δ / 2) / ‖v‖)², those of a helix.

    Args:
        straight: L, shape (q, d).
        around: v, radians per unit of each coordinate, shape (d,); None where nothing goes round.
        weight: a, weight of a small step around.
    """

    straight: Tensor
    around: Tensor | None = None
    weight: float = 0.0

    def squares(self, apart: Tensor) -> Tensor:
        """Return the squared distances of pairs (P, d), shape (P,)."""
        squares = (apart @ self.straight.T).square().sum(1)
        if self.around is None:
            return squares
        return squares + (2 * self.weight / self.around.norm() * torch.sin(apart @ self.around / 2)).square()

    @property
    def relevance(self) -> Tensor:
        """Weight of a small step along each coordinate, shape (d,)."""
        rows = self.straight
        if self.around is not None:
            rows = torch.cat([rows, self.weight * self.around[None] / self.around.norm()])
        return rows.norm(dim=0)


def best_wound(pairs: Pairs, straight: Tensor, axes: bool, weight: Tensor) -> list[Chart]:
    """Return the best charts in which one direction goes round, beginning at straight maps and the best periods.

    Args:
        pairs: The pairs to explain.
        straight: L of the straight maps, shape (B, q, d).
        axes: Whether their rows are multiples of coordinates, and stay such: then so is what goes round.
        weight: B weightings of the pairs, shape (B, P).
    """
    begun = [_begun(pairs, each, axes, share) for each, share in zip(straight, weight, strict=True)]
    starts, around = (torch.cat(parts) for parts in zip(*begun, strict=True))
    charts, losses = refitted(pairs, starts, around, axes, weight.repeat_interleave(PEAKS, 0))
    return [charts[PEAKS * i + int(at)] for i, at in enumerate(losses.view(-1, PEAKS).argmin(1))]


def refitted(pairs: Pairs, starts: Tensor, around: Tensor, axes: bool, weight: Tensor) -> tuple[list[Chart], Tensor]:
    """Return where each start comes to, and the losses.

    Args:
        pairs: The pairs to explain.
        starts: L, steps added to v and the logarithm of the squared distance across, flat, shape (R, q·d + d + 1).
        around: v of each start, shape (R, d).
        axes: Whether rows and v stay multiples of coordinates.
        weight: Weight of each pair, shape (R, P).
    """
    width = around.shape[1]
    rows = (starts.shape[1] - width - 1) // width
    fine = FINE / pairs.apart.abs().amax(0).clamp_min(1e-12)

    def parts(place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        maps, steps, heights = place[:, : rows * width], place[:, rows * width : -1], place[:, -1]
        maps = maps.unflatten(1, (rows, width))
        if axes:
            maps, steps = maps * torch.eye(width).to(maps), steps * (around != 0)
        return maps, around + fine * steps, heights.exp().clamp_min(FLATTEST)

    def loss(place: Tensor) -> Tensor:
        maps, phases, heights = parts(place)
        squares = torch.einsum("rqd,pd->rqp", maps, pairs.apart).square().sum(1)
        squares = squares + heights[:, None] * torch.sin(phases @ pairs.apart.T / 2).square()
        heaviness = maps.norm(dim=1).sum(1) + heights.sqrt() * phases.norm(dim=1) / 2
        return 1 - pairs.explained(squares, weight) + SPARSITY * heaviness

    place, losses = descended(starts, loss)
    maps, phases, heights = parts(place)
    weights = heights.sqrt() * phases.norm(dim=1) / 2
    return [Chart(maps[i], phases[i], float(weights[i])) for i in range(len(place))], losses


def start_of(chart: Chart) -> tuple[Tensor, Tensor]:
    """Return a start of `refitted` at a chart, and its v."""
    assert chart.around is not None
    height = 2 * torch.as_tensor(2 * chart.weight / float(chart.around.norm())).log()
    flat = torch.cat([chart.straight.flatten(), torch.zeros_like(chart.around), height[None].to(chart.around)])
    return flat[None], chart.around[None]


def _begun(pairs: Pairs, straight: Tensor, axes: bool, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return starts of `refitted` at the periods that explain most alone, and their v."""
    directions = torch.eye(straight.shape[1]).to(straight) if axes else torch.linalg.svd(straight).Vh[: len(straight)]
    scores, around, heights = _searched(pairs, directions, weight)
    best = scores.topk(min(PEAKS, len(scores))).indices
    best = best[torch.arange(PEAKS) % len(best)]  # so many starts, whether or not there are so many peaks
    around, heights = around[best], heights[best]
    along = around / around.norm(dim=1, keepdim=True)
    # What goes round is taken out of the rest, which may take it up again.
    rest = straight - (straight @ along.T).T[:, :, None] * along[:, None]
    rest = rest + 0.01 * straight.abs().max() * (torch.diag_embed(torch.ones_like(along)) if axes else 1.0)
    return torch.cat([rest.flatten(1), torch.zeros_like(around), heights.log()[:, None]], 1), around


def _searched(pairs: Pairs, directions: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return how much each period of each direction explains alone, if more than its neighbours do.

    Returns:
        The shares explained (n,), v (n, d), and the squared distances across the circle (n,).
    """
    some = torch.arange(0, len(weight), -(-len(weight) // SEARCHED))
    few, weight = Pairs(pairs.one[some], pairs.two[some], pairs.apart[some], pairs.transfer[some]), weight[some]
    turns = torch.linspace(FEWEST_TURNS, MOST_TURNS, TURNS).to(pairs.apart)
    scores, around, heights = [], [], []
    for direction in directions:
        along = few.apart @ direction
        frequencies = 2 * torch.pi * turns / along.abs().max().clamp_min(1e-12)
        squares = torch.sin(frequencies[:, None] * along / 2).square()
        best, height = torch.stack([few.explained(each * squares, weight[None]) for each in HEIGHTS]).max(0)
        padded = torch.nn.functional.pad(best, (1, 1), value=-1.0)
        peak = (best >= padded[:-2]) & (best >= padded[2:])
        scores.append(best[peak])
        around.append(frequencies[peak, None] * direction)
        heights.append(torch.tensor(HEIGHTS).to(best)[height[peak]])
    return torch.cat(scores), torch.cat(around), torch.cat(heights)
