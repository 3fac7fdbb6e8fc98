"""The transfer metric: how far apart descriptors are for a model that is carried from one domain to another.

Charts by Euclidean distance treat every descriptor coordinate alike, so that one irrelevant or badly scaled coordinate
ruins all of them. Here the data say which coordinates matter: models tuned on each domain are tried on the others, and
the metric is the one under which those that do well there lie near.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thetafield.errors import DataError
from thetafield.streams import torch_stream
from thetafield.typing import Anchors

PRUNED = 0.05  # directions that weigh less than this share of the heaviest are left out
SPARSITY = 2e-3  # cost of a unit of weight, where transfer has variance one
STEPS, STEP_SIZE = 150, 0.2
FEWEST = 5  # domains from which anything can be said
PAIRS = 10_000  # pairs of domains that a metric is fitted on; of more, so many are drawn
BOOTSTRAPS = 24
RANK, STARTS = 4, 24  # most directions of a rotated metric, and where the search for them begins
FOLDS = 3  # of domains, on which a rotated metric is judged
PAYS = 0.02  # share of the variance on unseen domains that a richer metric must explain beyond a plainer one


@dataclass(frozen=True, eq=False)
class Metric:
    """Distances ‖w ⊙ U (z − z')‖, with the heaviest weight one.

    Args:
        kind: "even" where all coordinates weigh alike, "diagonal" where each has a weight of its own, "turned" where
            directions mix them.
        directions: U, orthonormal rows of the directions that matter, shape (q, d): descriptor coordinates, or mixtures
            of them.
        weights: w of each direction, shape (q,).
        reach: Distance over which transfer falls by a factor e.
        explained: Share of the transfer's variance that distances explain.
        relevance: Weight of each descriptor coordinate relative to the heaviest, shape (d,).
        low: Its lower end over a bootstrap of the domains (a tenth of the refits lies below), shape (d,).
        high: Its upper end.
    """

    kind: str
    directions: Tensor
    weights: Tensor
    reach: float
    explained: float
    relevance: Tensor
    low: Tensor
    high: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        """Return descriptors (b, d) where distances are those of the metric, shape (b, q)."""
        return z @ self.directions.to(z).T * self.weights.to(z)


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


def learn_metric(z: Anchors, risks: Tensor, seed: int = 0, rotate: bool = True) -> Metric:
    """Return the metric that best explains transfer between domains: t_ij ≈ a exp(−‖L (z_i − z_j)‖²) + b.

    A diagonal L is found from several starts at once (each coordinate alone, and all together): from a single one it
    falls into a wrong minimum as soon as some coordinates say nothing. On domains that it has not seen it must explain
    more of the transfer than even weights do, which stay otherwise; an L of a few mixed directions takes its place
    where that explains more still.

    Args:
        z: Scaled descriptors of M domains.
        risks: R_ij, risk of domain i's model on domain j, shape (M, M).
        seed: Root seed of the held-out domains and the bootstrap.
        rotate: Whether mixed directions are tried.
    """
    if len(z) < FEWEST:
        raise DataError(f"A transfer metric needs at least {FEWEST} domains, but there are {len(z)}: set metric=false.")
    z, transfer = z.detach().cpu().double(), transferability(risks.detach().cpu().double())
    one, two = torch.triu_indices(len(z), len(z), 1)
    if len(one) > PAIRS:
        kept = torch.randperm(len(one), generator=torch_stream(seed, "metric", "pairs"))[:PAIRS]
        one, two = one[kept], two[kept]
    pairs = _Pairs(one, two, z[one] - z[two], transfer[one, two])
    kind = _judged(pairs, len(z), seed, rotate and z.shape[1] > 1)
    weights = _even(pairs) if kind == "even" else _best_diagonal(pairs)
    low, high = (torch.ones_like(weights),) * 2 if kind == "even" else _bootstrap(pairs, weights, len(z), seed)
    # L = V diag(s) U: distances are those of s ⊙ U z. A diagonal L is its own.
    chart, sizes, directions = torch.diag(weights), weights, torch.eye(len(weights), dtype=weights.dtype)
    if kind == "turned":
        chart = _turned(pairs, weights, torch_stream(seed, "metric", "rotation"))
        _, sizes, directions = torch.linalg.svd(chart, full_matrices=False)
    kept = sizes > PRUNED * sizes.max()
    relevance = chart.norm(dim=0) / chart.norm(dim=0).max()
    return Metric(
        kind=kind,
        directions=directions[kept].float(),
        weights=(sizes[kept] / sizes.max()).float(),
        reach=1 / float(sizes.max()),
        explained=float(pairs.explained((pairs.apart @ chart.T).square().sum(1)[None])),
        relevance=relevance.float(),
        low=torch.minimum(low, relevance).float(),  # refits start at the weights that were found, and prune further
        high=torch.maximum(high, relevance).float(),
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of domains: who they are, how their descriptors differ, and their transfer."""

    one: Tensor
    two: Tensor
    apart: Tensor
    transfer: Tensor

    def where(self, mask: Tensor) -> "_Pairs":
        """Return some of the pairs."""
        return _Pairs(self.one[mask], self.two[mask], self.apart[mask], self.transfer[mask])

    def explained(self, squares: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the share of the transfer's variance that a exp(−squares) + b explains, with the best a ≥ 0 and b.

        Args:
            squares: Squared distances of all pairs, shape (R, P).
            weight: Weight of each pair, shape (R, P).
        """
        share = torch.ones_like(squares) if weight is None else weight
        share = share / share.sum(1, keepdim=True)
        near = torch.exp(-squares)
        near = near - (share * near).sum(1, keepdim=True)
        transfer = self.transfer - (share * self.transfer).sum(1, keepdim=True)
        along, spread, total = ((share * part).sum(1) for part in (near * transfer, near**2, transfer**2))
        return along.clamp_min(0) ** 2 / ((spread + 1e-9) * (total + 1e-9))


@torch.enable_grad()
def _descended(start: Tensor, loss: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return where each start (R, ...) comes to under its own loss (R,), and that loss."""
    place = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([place], lr=STEP_SIZE)
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = STEP_SIZE * (1 - step / STEPS)
        optimiser.zero_grad()
        loss(place).sum().backward()
        optimiser.step()
    return place.detach(), loss(place).detach()


def _diagonal(pairs: _Pairs, starts: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the weights that each start (R, d), given by the logarithms of their squares, comes to, and its loss."""
    squares = pairs.apart.square().T

    def loss(logarithms: Tensor) -> Tensor:
        powers = logarithms.exp()
        return 1 - pairs.explained(powers @ squares, weight) + SPARSITY * powers.sqrt().sum(1)

    logarithms, losses = _descended(starts, loss)
    return (logarithms / 2).exp(), losses


def _best_diagonal(pairs: _Pairs) -> Tensor:
    """Return the best weights over starts with each coordinate alone, and with all of them at three scales."""
    width = pairs.apart.shape[1]
    alone = torch.full((width, width), -2.0).fill_diagonal_(4.0)
    together = torch.tensor([0.0, 2.0, 4.0])[:, None].expand(-1, width)
    weights, losses = _diagonal(pairs, torch.cat([alone, together]).to(pairs.apart))
    return weights[losses.argmin()]


def _turned(pairs: _Pairs, weights: Tensor, stream: torch.Generator) -> Tensor:
    """Return the best map L of few rows, shape (q, d), from starts at the diagonal one and along single directions."""
    width, rank = len(weights), min(RANK, len(weights))
    heaviest = weights.topk(rank).indices
    turns = torch.linalg.qr(torch.randn(STARTS, width, width, dtype=weights.dtype, generator=stream)).Q[:, :rank]
    alone = torch.full((rank, 1), -1.0, dtype=weights.dtype).index_fill(0, torch.tensor([0]), 2.0).exp()
    starts = torch.cat([torch.diag(weights)[heaviest][None], alone * turns])
    starts = starts + 0.01 * weights.max() * torch.randn(starts.shape, dtype=weights.dtype, generator=stream)

    def loss(maps: Tensor) -> Tensor:
        distances = torch.einsum("rqd,pd->rqp", maps, pairs.apart).square().sum(1)
        return 1 - pairs.explained(distances) + SPARSITY * maps.norm(dim=1).sum(1)

    maps, losses = _descended(starts, loss)
    return maps[losses.argmin()]


def _judged(pairs: _Pairs, count: int, seed: int, rotate: bool) -> str:
    """Return which kind of map explains most of the transfer to and from domains that it was not fitted on.

    A richer one must explain clearly more: "even" weights, "diagonal" ones, or a "turned" map.
    """
    if count < FEWEST * FOLDS:
        return "diagonal"
    stream = torch_stream(seed, "metric", "held out")
    explained = torch.zeros(3, dtype=pairs.apart.dtype)
    for held in torch.randperm(count, generator=stream).tensor_split(FOLDS):
        unseen = torch.isin(pairs.one, held) | torch.isin(pairs.two, held)
        seen, judged = pairs.where(~unseen), pairs.where(unseen)
        weights = _best_diagonal(seen)
        maps = [torch.diag(_even(seen)), torch.diag(weights)]
        maps += [_turned(seen, weights, stream)] if rotate else []
        distances = torch.stack([(judged.apart @ each.T).square().sum(1) for each in maps])
        explained[: len(maps)] += judged.explained(distances) / FOLDS
    even, diagonal, turned = explained.tolist()
    kind, best = ("diagonal", diagonal) if diagonal > even + PAYS else ("even", even)
    return "turned" if rotate and turned > best + PAYS else kind


def _even(pairs: _Pairs) -> Tensor:
    """Return the weights of a metric that treats all coordinates alike."""
    scales, losses = _diagonal(
        replace(pairs, apart=pairs.apart.norm(dim=1, keepdim=True)), torch.tensor([[0.0], [2.0], [4.0]]).to(pairs.apart)
    )
    return scales[losses.argmin()].expand(pairs.apart.shape[1])


def _bootstrap(pairs: _Pairs, weights: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the lower and upper end of each coordinate's relevance when domains are drawn anew."""
    stream = torch_stream(seed, "metric", "bootstrap")
    drawn = torch.randint(count, (BOOTSTRAPS, count), generator=stream)
    times = torch.nn.functional.one_hot(drawn, count).sum(1).to(weights)
    starts = 2 * weights.clamp_min(1e-2).log().expand(BOOTSTRAPS, -1)
    refits, _ = _diagonal(pairs, starts, times[:, pairs.one] * times[:, pairs.two])
    relevance = refits / refits.amax(1, keepdim=True)
    return relevance.quantile(0.1, 0), relevance.quantile(0.9, 0)
