"""The transported field: parameters carried from the nearest training domains by a learned transport."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thetafield.errors import OptionError, closest
from thetafield.fields.base import CELLS, ParameterField
from thetafield.geometry.atlas import partition_of_unity
from thetafield.geometry.coder import WIDTHS, make_coder
from thetafield.geometry.laws import ParameterTransport
from thetafield.geometry.metric import Metric
from thetafield.geometry.neighbours import Distinct, nearest
from thetafield.geometry.transport import LieTransport, LinearTransport, PlainTransport, Transport

CHUNK = 8192  # descriptors carried at once: bounds the memory of their generators
SAYING = 8  # charts that are asked whether they agree
WIDEST_ROW = 64  # descriptors on which one anchor's generators act at once


class TransportedField(ParameterField):
    """θ(z) = decode(Σ_i w_i(z) T(encode(θ_i), z_i, z)) over the nearest training domains under the charts' metric.

    One chart alone answers as in the paper, with a jump wherever another anchor becomes the nearest. Several together
    are an atlas: their shares w_i come from a partition of unity, and θ is continuous in z.

    Args:
        descriptor_dim: d.
        theta_dim: D.
        num_anchors: N.
        latent_dim: m.
        coder: "perceptron" or "lean".
        widths: Hidden widths of the perceptron coder.
        rank: Number of directions of the lean coder.
        transport: "lie", "plain" or "linear".
        gate: Whether a gate modulates the descriptors.
        num_generators: r; None takes one per descriptor coordinate. Read by the Lie transport only.
        hidden: Width of the field network.
        generators: "field", "constant" or "commuting". Read by the Lie transport only.
        projected: Whether charts and transport see descriptors along directions that a metric may choose.
        blend: Number of nearest anchors that answer together.
        bandwidth: How fast their shares fall off; None lets the radius alone decide.
    """

    kind = "transported"
    anchors: Tensor
    chart_weights: Tensor
    learned_relevance: Tensor | None

    def __init__(
        self,
        descriptor_dim: int,
        theta_dim: int,
        num_anchors: int,
        latent_dim: int = 32,
        coder: str = "perceptron",
        widths: Sequence[int] = WIDTHS,
        rank: int = 64,
        transport: str = "lie",
        gate: bool = True,
        num_generators: int | None = None,
        hidden: int = 128,
        generators: str = "field",
        projected: bool = False,
        blend: int = 1,
        bandwidth: float | None = None,
    ) -> None:
        super().__init__(descriptor_dim, theta_dim)
        self._config = {
            "descriptor_dim": descriptor_dim,
            "theta_dim": theta_dim,
            "num_anchors": num_anchors,
            "latent_dim": latent_dim,
            "coder": coder,
            "widths": list(widths),
            "rank": rank,
            "transport": transport,
            "gate": gate,
            "num_generators": num_generators,
            "hidden": hidden,
            "generators": generators,
            "projected": projected,
        }
        self.blend, self.bandwidth = blend, bandwidth
        self.theta = nn.Parameter(torch.zeros(num_anchors, theta_dim))
        self.register_buffer("anchors", torch.zeros(num_anchors, descriptor_dim))
        # Relevance of each coordinate under a learned metric, and the ends of its bootstrap; zero without one.
        self.register_buffer("learned_relevance", torch.zeros(3, descriptor_dim) if projected else None)
        self.coder = make_coder(coder, theta_dim, latent_dim, tuple(widths), rank)
        kinds: dict[str, Callable[[], Transport]] = {
            "lie": lambda: LieTransport(
                descriptor_dim,
                latent_dim,
                gate=gate,
                num_generators=num_generators,
                hidden=hidden,
                generators=generators,
                projected=projected,
            ),
            "plain": lambda: PlainTransport(descriptor_dim, latent_dim, gate=gate, hidden=hidden, projected=projected),
            "linear": lambda: LinearTransport(
                descriptor_dim, latent_dim, gate=gate, hidden=hidden, projected=projected
            ),
        }
        if transport not in kinds:
            raise OptionError(f"There is no transport {transport!r}; {closest(transport, kinds)}")
        self.transport = kinds[transport]()
        self.register_buffer("chart_weights", torch.ones(self.transport.seen_dim))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor arguments."""
        return self._config | {"blend": self.blend, "bandwidth": self.bandwidth}

    @property
    def operator(self) -> ParameterTransport:
        """The transport at θ level, for the laws."""
        return ParameterTransport(self.coder, self.transport)

    def charted(self, z: Tensor) -> Tensor:
        """Return descriptors (b, d) where distances are those of the charts."""
        return self.transport.seen(z) * self.chart_weights

    @property
    def spacing(self) -> float:
        """Distance under the charts' metric to the nearest other anchor, which nine of ten stay within."""
        places = Distinct.of(self.charted(self.anchors)).points
        if len(places) < 2:
            return 1.0
        return float(nearest(places, places, 2)[0][:, 1].quantile(0.9))

    @torch.no_grad()
    def adopt(self, metric: Metric) -> None:
        """Let charts and transport go by a learned metric."""
        assert self.learned_relevance is not None
        self.transport.see(metric)
        self.chart_weights.zero_()[: len(metric.weights)] = metric.weights.to(self.anchors)
        self.learned_relevance.copy_(torch.stack([metric.relevance, metric.low, metric.high]))

    @torch.no_grad()
    def forget_metric(self) -> None:
        """Let all coordinates count alike again."""
        assert self.learned_relevance is not None
        self.transport.see(None)
        self.chart_weights.fill_(1)
        self.learned_relevance.zero_()

    def relevance(self, z: Tensor) -> Tensor:
        """Return the weights of the metric where one was learned."""
        learned = self.learned_relevance
        return super().relevance(z) if learned is None or not learned.any() else learned

    def doubts(self, z: Tensor) -> Tensor:
        """Return distance to the nearest anchor, disagreement of charts and error of reconstruction, shape (b, 3).

        Distances are in spacings of the anchors; disagreement is the spread of the latents that the nearest charts
        carry; the coder's error is that of the nearest anchor's θ.
        """
        distances, carried = self._said(z)
        index = nearest(self.charted(z), self.charted(self.anchors))[1][:, 0]
        used, back = torch.unique(index, return_inverse=True)
        theta = self.theta[used]
        lost = (self.coder.decode(self.coder.encode(theta)) - theta).norm(dim=1)[back]
        spread = (carried - carried.mean(1, keepdim=True)).norm(dim=2).mean(1)
        return torch.stack([distances[:, 0] / self.spacing, spread, lost], 1)

    def opinions(self, z: Tensor) -> Tensor:
        """Return θ as each of the nearest charts alone says it, shape (b, c, D)."""
        _, carried = self._said(z)
        return self.coder.decode(carried.flatten(0, 1)).unflatten(0, carried.shape[:2])

    def _said(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distances of the nearest anchors and the latents that they carry, (b, c) and (b, c, m)."""
        count = min(SAYING, len(self.anchors))
        distances, index = nearest(self.charted(z), self.charted(self.anchors), count)
        carried = self.carried(z.repeat_interleave(count, 0), index.flatten())
        return distances, carried.unflatten(0, (-1, count))

    def thetas(self, z: Tensor) -> Tensor:
        """Carry the latents of the nearest anchors to each descriptor, blend and decode them."""
        if not len(z):
            return z.new_zeros(0, self.theta_dim)
        latent = self.latents(z)
        theta = latent.new_empty(len(z), self.theta_dim)
        part = max(1, CELLS // self.theta_dim)
        for start in range(0, len(z), part):
            theta[start : start + part] = self.coder.decode(latent[start : start + part])
        return theta

    def latents(self, z: Tensor) -> Tensor:
        """Return the blended latent at each descriptor, shape (b, m)."""
        count = min(self.blend, len(self.anchors) - 1)
        if count < 2:
            _, index = nearest(self.charted(z), self.charted(self.anchors))
            return self.carried(z, index[:, 0])
        distances, index = nearest(self.charted(z), self.charted(self.anchors), count + 1)
        shares = partition_of_unity(distances, math.inf if self.bandwidth is None else self.bandwidth)
        carried = self.carried(z.repeat_interleave(count, 0), index[:, :count].flatten()).unflatten(0, (-1, count))
        return (shares[..., None] * carried).sum(1)

    def carried(self, z: Tensor, index: Tensor) -> Tensor:
        """Return the latents of the anchors at `index` carried to each descriptor, shape (b, m).

        Descriptors are put in rows of one anchor each, so that its generators are formed once for a row and act on all
        of it as one matrix.
        """
        used, group, sizes = torch.unique(index, return_inverse=True, return_counts=True)
        part = max(1, CELLS // self.theta_dim)
        latents = torch.cat([self.coder.encode(self.theta[index]) for index in used.split(part)])
        # A row is as wide as the mean group, so that at most half of the places stay empty.
        width = min(WIDEST_ROW, max(1, len(z) // len(used)))
        row, place = _rows(group, sizes, width)
        source = self.anchors[used[row]]
        # An empty place stays at the source, where there is nothing to do.
        target = source.repeat_interleave(width, 0).index_copy(0, place, z).unflatten(0, (-1, width))
        carried = [
            self.transport(latents[index], start, end)
            for index, start, end in zip(*(t.split(max(1, CHUNK // width)) for t in (row, source, target)), strict=True)
        ]
        return torch.cat(carried).flatten(0, 1)[place]


def _rows(group: Tensor, sizes: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Cut groups into rows of `width` places.

    Args:
        group: Group of each member, shape (b,).
        sizes: Number of members of each group.
        width: Places in a row.

    Returns:
        The group of each row, and the place of each member, counted through all rows, shape (b,).

    Example:
        >>> _rows(torch.tensor([1, 0, 1, 1]), torch.tensor([1, 3]), 2)
        (tensor([0, 1, 1]), tensor([2, 0, 3, 4]))
    """
    order = torch.argsort(group, stable=True)
    rank = torch.empty_like(group)
    rank[order] = torch.arange(len(group), device=group.device) - (sizes.cumsum(0) - sizes)[group[order]]
    counts = (sizes + width - 1) // width
    first = (counts.cumsum(0) - counts) * width
    return torch.arange(len(sizes), device=group.device).repeat_interleave(counts), first[group] + rank
