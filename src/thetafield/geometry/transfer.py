"""Transfer between domains, and the straight maps of descriptors that explain it: even, diagonal and turned.

Several weightings of the same pairs are fitted at once, one for each fold and one for all: the steps of a descent cost
the same for many starts as for one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

SPARSITY = 2e-3  # cost of a unit of weight, where transfer has variance one
STEPS, STEP_SIZE = 150, 0.2
RANK, STARTS = 4, 12  # most directions of a turned map, and where the search for them begins


def transferability(risks: Tensor) -> Tensor:
    """Return how well a model of one domain does on another, both ways together, with mean 0 and variance 1.

    Args:
        risks: R_ij, risk of domain i's model on domain j, shape (M, M).

    Returns:
        The symmetric matrix; its diagonal says nothing.
    """
    excess = risks - risks.diagonal()
    apart = ~torch.eye(len(risks), dtype=torch.bool, device=risks.device)
    # Far away one model is as useless as another: how useless would only drown what happens nearby.
    excess = excess.clamp(max=excess[apart].quantile(0.9).item())
    both = -(excess + excess.T) / 2
    return (both - both[apart].mean()) / both[apart].std().clamp_min(torch.finfo(risks.dtype).eps)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of domains.

    Args:
        one: Position of one of them, shape (P,).
        two: Position of the other.
        apart: How their descriptors differ, shape (P, d).
        transfer: Their transfer, shape (P,).
    """

    one: Tensor
    two: Tensor
    apart: Tensor
    transfer: Tensor

    def explained(self, squares: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the share of the transfer's variance that a exp(−squares) + b explains, with the best a ≥ 0 and b.

        Args:
            squares: Squared distances of all pairs, shape (R, P).
            weight: Weight of each pair, shape (R, P) or (1, P).
        """
        share = torch.ones_like(squares[:1]) if weight is None else weight
        share = share / share.sum(1, keepdim=True)
        near = torch.exp(-squares)
        near = near - (share * near).sum(1, keepdim=True)
        transfer = self.transfer - (share * self.transfer).sum(1, keepdim=True)
        along, spread, total = ((share * part).sum(1) for part in (near * transfer, near**2, transfer**2))
        return along.clamp_min(0) ** 2 / ((spread + 1e-9) * (total + 1e-9))


@torch.enable_grad()
def descended(start: Tensor, loss: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return where each start (R, ...) comes to under its own loss (R,), and that loss."""
    place = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([place], lr=STEP_SIZE)
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = STEP_SIZE * (1 - step / STEPS)
        optimiser.zero_grad()
        loss(place).sum().backward()
        optimiser.step()
    return place.detach(), loss(place).detach()


def least(losses: Tensor, places: Tensor) -> Tensor:
    """Return the place (B, ...) of the least loss for each of B problems, whose starts lie one after the other."""
    return places[losses.argmin(1) + torch.arange(len(losses)) * losses.shape[1]]


def diagonal(pairs: Pairs, starts: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights that each start (R, d), given by the logarithms of their squares, comes to, and its loss."""
    squares = pairs.apart.square().T

    def loss(logarithms: Tensor) -> Tensor:
        powers = logarithms.exp()
        return 1 - pairs.explained(powers @ squares, weight) + SPARSITY * powers.sqrt().sum(1)

    logarithms, losses = descended(starts, loss)
    return (logarithms / 2).exp(), losses


def best_diagonal(pairs: Pairs, weight: Tensor) -> Tensor:
    """Return the best weights for B weightings (B, P) of the pairs, shape (B, d).

    Starts are each coordinate alone, and all of them at three scales.
    """
    width = pairs.apart.shape[1]
    alone = torch.full((width, width), -2.0).fill_diagonal_(4.0)
    together = torch.tensor([0.0, 2.0, 4.0])[:, None].expand(-1, width)
    starts = torch.cat([alone, together]).to(pairs.apart)
    weights, losses = diagonal(pairs, starts.repeat(len(weight), 1), weight.repeat_interleave(len(starts), 0))
    return least(losses.view(len(weight), -1), weights)


def best_even(pairs: Pairs, weight: Tensor) -> Tensor:
    """Return the weights of a metric that treats all coordinates alike, shape (B, d)."""
    plain = replace(pairs, apart=pairs.apart.norm(dim=1, keepdim=True))
    starts = torch.tensor([[0.0], [2.0], [4.0]]).to(pairs.apart)
    scales, losses = diagonal(plain, starts.repeat(len(weight), 1), weight.repeat_interleave(len(starts), 0))
    return least(losses.view(len(weight), -1), scales).expand(-1, pairs.apart.shape[1])


def best_turned(pairs: Pairs, weights: Tensor, weight: Tensor, stream: torch.Generator) -> Tensor:
    """Return the best map L of few rows, shape (B, q, d), from starts at the diagonal one and along single directions.

    Args:
        pairs: The pairs.
        weights: Of the best diagonal map, shape (B, d).
        weight: B weightings of the pairs, shape (B, P).
        stream: Where the directions come from.
    """
    width = weights.shape[1]
    rank = min(RANK, width)
    turns = torch.linalg.qr(torch.randn(STARTS, width, width, dtype=weights.dtype, generator=stream)).Q[:, :rank]
    alone = torch.full((rank, 1), -1.0, dtype=weights.dtype).index_fill(0, torch.tensor([0]), 2.0).exp()
    plain = torch.stack([torch.diag(each)[each.topk(rank).indices] for each in weights])
    starts = torch.cat([plain[:, None], (alone * turns).expand(len(weight), -1, -1, -1)], 1)
    shaken = torch.randn(starts.shape[1:], dtype=weights.dtype, generator=stream)
    starts = starts + 0.01 * weights.amax(1)[:, None, None, None] * shaken
    shares = weight.repeat_interleave(starts.shape[1], 0)

    def loss(maps: Tensor) -> Tensor:
        distances = torch.einsum("rqd,pd->rqp", maps, pairs.apart).square().sum(1)
        return 1 - pairs.explained(distances, shares) + SPARSITY * maps.norm(dim=1).sum(1)

    maps, losses = descended(starts.flatten(0, 1), loss)
    return least(losses.view(len(weight), -1), maps)
