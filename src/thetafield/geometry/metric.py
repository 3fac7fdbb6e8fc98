"""The transfer metric: how far apart descriptors are for a model that is carried from one domain to another.

Charts by Euclidean distance treat every descriptor coordinate alike, so that one irrelevant or badly scaled coordinate
ruins all of them, and take what has gone round once for far away. Here the data say which coordinates matter and
whether one of them comes back: models tuned on each domain are tried on the others, and the metric is the one under
which those that do well there lie near.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.errors import DataError
from thetafield.geometry.transfer import Pairs, best_diagonal, best_even, best_turned, diagonal, transferability
from thetafield.geometry.winding import Chart, best_wound, refitted, start_of, wound
from thetafield.streams import torch_stream
from thetafield.typing import Anchors

PRUNED = 0.05  # directions that weigh less than this share of the heaviest are left out
FEWEST = 5  # domains from which anything can be said
PAIRS = 3000  # pairs of domains that a metric is fitted on; of more, so many are drawn
BOOTSTRAPS = 24
FOLDS = 3  # of domains, on which richer metrics are judged
PAYS = 0.02  # share of the variance on unseen domains that a richer metric must explain beyond a plainer one


@dataclass(frozen=True, eq=False)
class Metric:
    """Distances ‖w ⊙ (s(z) − s(z'))‖ with s = U z, in which one direction may go round; the heaviest weight is one.

    Args:
        kind: "even" where all coordinates weigh alike, "diagonal" where each has a weight of its own, "turned" where
            directions mix them; "round" and "turned round" where one of them goes round besides.
        directions: U, unit rows of the directions that matter, shape (q, d): descriptor coordinates, or mixtures of
            them; q is at most d + 1. One that goes round is there twice, for the sine and the cosine.
        weights: w of each direction, shape (q,).
        frequencies: Radians per unit of each direction that goes round, 0 for the others, shape (q,).
        phases: 0 for sines and π/2 for cosines, shape (q,).
        reach: Distance over which transfer falls by a factor e.
        explained: Share of the transfer's variance that distances explain.
        relevance: Weight of each descriptor coordinate relative to the heaviest, shape (d,).
        low: Its lower end over a bootstrap of the domains (a tenth of the refits lies below), shape (d,).
        high: Its upper end.
    """

    kind: str
    directions: Tensor
    weights: Tensor
    frequencies: Tensor
    phases: Tensor
    reach: float
    explained: float
    relevance: Tensor
    low: Tensor
    high: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        """Return descriptors (b, d) where distances are those of the metric, shape (b, q)."""
        return wound(z, *(part.to(z) for part in (self.directions, self.frequencies, self.phases))) * self.weights.to(z)

    @property
    def period(self) -> float | None:
        """How far it is once round, if there is something that goes round."""
        fastest = float(self.frequencies.max())
        return 2 * torch.pi / fastest if fastest else None


def learn_metric(z: Anchors, risks: Tensor, seed: int = 0, rotate: bool = True) -> Metric:
    """Return the metric that best explains transfer between domains: t_ij ≈ a exp(−‖L (z_i − z_j)‖²) + b.

    A diagonal L is found from several starts at once (each coordinate alone, and all together): from a single one it
    falls into a wrong minimum as soon as some coordinates say nothing. On domains that it has not seen it must explain
    more of the transfer than even weights do, which stay otherwise. An L of a few mixed directions takes its place
    where that explains more still, and either is wound round a circle where that does.

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
    pairs = Pairs(one, two, z[one] - z[two], transfer[one, two])
    kind, chart = _judged(pairs, len(z), seed, rotate and z.shape[1] > 1)
    low, high = _bootstrap(pairs, chart, kind, len(z), seed)
    relevance = chart.relevance / chart.relevance.max()
    directions, weights, frequencies = _rows(chart, kind)
    return Metric(
        kind=kind,
        directions=directions.float(),
        weights=(weights / weights.max()).float(),
        frequencies=frequencies.float(),
        # The last row is the cosine of what goes round.
        phases=torch.pi / 2 * (frequencies > 0).cumsum(0).sub(1).clamp_min(0).float(),
        reach=1 / float(weights.max()),
        explained=float(pairs.explained(chart.squares(pairs.apart)[None])),
        relevance=relevance.float(),
        low=torch.minimum(low, relevance).float(),  # refits start at the weights that were found, and prune further
        high=torch.maximum(high, relevance).float(),
    )


def _judged(pairs: Pairs, count: int, seed: int, rotate: bool) -> tuple[str, Chart]:
    """Return which kind of chart explains most of the transfer to and from domains that it was not fitted on.

    A richer one must explain clearly more than every plainer one. The chart is that of all pairs.
    """
    everything = torch.ones_like(pairs.transfer)[None]
    if count < FEWEST * FOLDS:
        return "diagonal", Chart(torch.diag(best_diagonal(pairs, everything)[0]))
    stream = torch_stream(seed, "metric", "held out")
    folds = torch.randperm(count, generator=stream).tensor_split(FOLDS)
    unseen = torch.stack([torch.isin(pairs.one, held) | torch.isin(pairs.two, held) for held in folds]).to(everything)
    charts = _fitted(pairs, torch.cat([1 - unseen, everything]), stream if rotate else None)
    explained = {
        kind: sum(
            float(pairs.explained(chart.squares(pairs.apart)[None], judged[None]))
            for chart, judged in zip(found, unseen, strict=False)  # the last one is of all pairs
        )
        / FOLDS
        for kind, found in charts.items()
    }
    best = "even"
    for kind, share in explained.items():
        best = kind if share > explained[best] + PAYS else best
    return best, charts[best][-1] if charts[best][-1].around is None else _settled(pairs, charts[best], best == "round")


def _settled(pairs: Pairs, charts: list[Chart], axes: bool) -> Chart:
    """Return the last chart, which is of all pairs, unless a second descent explains clearly more of them.

    A descent may let a coordinate fall to nothing on its way, and hardly anything leads back from there: one training
    on 70 pairs of moons came to ignore their scale. A second one starts there, and where parts of the pairs have led.
    """
    starts, around = (torch.cat(parts) for parts in zip(*map(start_of, charts), strict=True))
    again, losses = refitted(pairs, starts, around, axes, pairs.transfer.new_ones(len(charts), len(pairs.transfer)))
    first, second = charts[-1], again[int(losses.argmin())]
    gain = pairs.explained(second.squares(pairs.apart)[None]) - pairs.explained(first.squares(pairs.apart)[None])
    return second if gain > PAYS else first


def _fitted(pairs: Pairs, weight: Tensor, stream: torch.Generator | None) -> dict[str, list[Chart]]:
    """Return the best charts of each kind for several weightings of the pairs, the plainest kind first.

    Args:
        pairs: The pairs.
        weight: B weightings, shape (B, P).
        stream: Where the starts of turned maps come from; None tries none.
    """
    weights = best_diagonal(pairs, weight)
    found = {
        "even": [Chart(torch.diag(each)) for each in best_even(pairs, weight)],
        "diagonal": [Chart(torch.diag(each)) for each in weights],
    }
    rounded = best_wound(pairs, torch.diag_embed(weights), True, weight)
    if stream is None:
        return found | {"round": rounded}
    turned = best_turned(pairs, weights, weight, stream)
    both = best_wound(pairs, turned, False, weight)
    return found | {"turned": [Chart(each) for each in turned], "round": rounded, "turned round": both}


def _rows(chart: Chart, kind: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return unit directions, their weights and their frequencies; those that hardly count are left out."""
    # L = V diag(s) U: distances are those of s ⊙ U z. A diagonal L is its own.
    directions, weights = torch.eye(chart.straight.shape[1]).to(chart.straight), chart.straight.diagonal().abs()
    if kind.startswith("turned"):
        _, weights, directions = torch.linalg.svd(chart.straight, full_matrices=False)
    heaviest = max(float(weights.max()), chart.weight)
    kept = weights > PRUNED * heaviest
    directions, weights, frequencies = directions[kept], weights[kept], torch.zeros_like(weights[kept])
    if chart.around is None:
        return directions, weights, frequencies
    room = chart.straight.shape[1] - 1
    heavy = weights.argsort(descending=True)[:room].sort().values
    size = chart.around.norm()
    return (
        torch.cat([directions[heavy], (chart.around / size).expand(2, -1)]),
        torch.cat([weights[heavy], weights.new_full((2,), chart.weight)]),
        torch.cat([frequencies[heavy], size.expand(2)]),
    )


def _bootstrap(pairs: Pairs, chart: Chart, kind: str, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the lower and upper end of each coordinate's relevance when domains are drawn anew."""
    if kind == "even":
        return (torch.ones_like(chart.relevance),) * 2
    stream = torch_stream(seed, "metric", "bootstrap")
    drawn = torch.randint(count, (BOOTSTRAPS, count), generator=stream)
    times = torch.nn.functional.one_hot(drawn, count).sum(1).to(pairs.apart)
    shares = times[:, pairs.one] * times[:, pairs.two]
    if chart.around is None:
        weights = chart.relevance if kind == "diagonal" else best_diagonal(pairs, torch.ones_like(shares[:1]))[0]
        refits, _ = diagonal(pairs, 2 * weights.clamp_min(1e-2).log().expand(BOOTSTRAPS, -1), shares)
    else:
        start, around = (part.expand(BOOTSTRAPS, -1) for part in start_of(chart))
        charts, _ = refitted(pairs, start, around, kind == "round", shares)
        refits = torch.stack([each.relevance for each in charts])
    relevance = refits / refits.amax(1, keepdim=True)
    return relevance.quantile(0.1, 0), relevance.quantile(0.9, 0)
