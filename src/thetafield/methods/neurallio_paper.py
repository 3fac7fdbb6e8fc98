"""NeuralLio as in the paper: per-domain parameters, a coder, and a Lie transport trained over charts."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.errors import OptionError
from thetafield.fields.rows import RowTable
from thetafield.fields.transported import TransportedField
from thetafield.geometry.atlas import gather_rows, knn_charts, random_charts
from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.phase import Phase, Player, Schedule, Step, Work
from thetafield.methods.space import LR, Choice
from thetafield.options import Count, Natural, NonNegative, Positive
from thetafield.streams import torch_stream

MEASURED = 4096  # charts on which the transport's norm is measured


@dataclass(frozen=True)
class ChartBatch:
    """A block of anchors with their charts, over samples of all the domains in them.

    Args:
        support: Samples of the domains that edges lead to: all domains, where the charts of a block are as many as
            those or more, and otherwise one entry for each edge, a domain that several edges share repeated.
        target: Position of each edge's target in the support, shape (b, k + 1); column 0 is the anchor itself.
        weight: One for each anchor, zero for those that only fill up the last block of an epoch, shape (b,).
        shared: Whether the support holds all domains.
    """

    support: DomainBatch
    target: Tensor
    weight: Tensor
    shared: bool

    @property
    def anchor(self) -> Tensor:
        """Position of each anchor in the support, shape (b,)."""
        return self.target[:, 0]

    def at_anchors(self, values: Tensor) -> Tensor:
        """Return the rows of the anchors, shape (b, ...), of values that the support has one of each."""
        if self.shared:
            return gather_rows(values, self.anchor)
        return values.unflatten(0, self.target.shape)[:, 0]

    def at_targets(self, values: Tensor) -> Tensor:
        """Return the rows of all edges' targets, shape (b · (k + 1), ...)."""
        return gather_rows(values, self.target.flatten()) if self.shared else values


@METHODS.register("neurallio-paper")
class NeuralLioPaper(Method):
    """Joint training of θ_i, coder and transport over the charts (Algorithm 1 of the paper).

    Every θ_i starts from one shared vector, which keeps all heads in one basin. The loss of a block sums
    R_i(θ_i) once per neighbour, R_j(θ̂_j), and the squared errors of reconstruction, embedding and consistency, each
    a mean over coordinates, with the weights of the authors' public demo.

    Args:
        problem: The training side.
        epochs: Passes over all anchors.
        block: Anchors per step.
        shuffle: Whether blocks are drawn anew every epoch; the demo keeps a fixed order.
        samples: Samples drawn from each domain per step; 0 takes all.
        neighbours: k, beside the anchor itself.
        charts: Whether targets are the k nearest domains; otherwise k random ones, drawn anew at every step.
        gate: Whether the descriptor gate is used; the demo has none, and the paper's 2-Moons ablation lists none.
        latent_dim: m.
        num_generators: r; None takes one per descriptor coordinate.
        generators: "field" as in the paper; "constant", or "commuting" for laws that hold by construction.
        hidden: Width of the field network.
        widths: Hidden widths of the coder.
        reconstruction: Weight of ‖f_d(e_i) − θ_i‖².
        embedding: Weight of ‖ê_j − f_e(θ_j)‖².
        consistency: Weight of ‖θ̂_j − θ_j‖².
        lr: Adam's step size.
        schedule: "constant" as in the demo, or "cosine" after 2 % of linear warm-up.
        weight_decay: L2 coefficient.
        keep: "best" keeps the epoch with the lowest training loss, as the demo does.

    Reference:
        Cai et al., *Continuous Domain Generalization*, NeurIPS 2025.
    """

    name = "neurallio-paper"
    title = "NeuralLio (paper)"
    reference = "Cai et al., 2025"
    needs = Needs(descriptor=True, min_domains=2)
    space = {
        "neighbours": Choice((3, 5, 10, 20)),
        "gate": Choice((True, False)),
        "generators": Choice(("field", "constant")),
        "lr": LR,
    }
    transport: ClassVar[str] = "lie"

    def __init__(
        self,
        problem: Problem,
        *,
        epochs: Count = 200,
        block: Count = 5,
        shuffle: bool = False,
        samples: Natural = 0,
        neighbours: Count = 5,
        charts: bool = True,
        gate: bool = False,
        latent_dim: Count = 32,
        num_generators: Count | None = None,
        generators: Literal["field", "constant", "commuting"] = "field",
        hidden: Count = 128,
        widths: tuple[Count, ...] = (1024, 512, 128),
        reconstruction: NonNegative = 100.0,
        embedding: NonNegative = 10.0,
        consistency: NonNegative = 100.0,
        lr: Positive = 1e-3,
        schedule: Literal["constant", "cosine"] = "constant",
        weight_decay: NonNegative = 1e-4,
        keep: Literal["last", "best"] = "best",
    ) -> None:
        super().__init__(problem)
        if self.transport != "lie" and (num_generators is not None or generators != "field"):
            raise OptionError(f"{self.title} has no generators: leave out num_generators and generators.")
        z = problem.domains.z
        self.epochs, self.block, self.shuffle, self.samples = epochs, min(block, len(z)), shuffle, samples
        self.reconstruction, self.embedding, self.consistency = reconstruction, embedding, consistency
        self.lr, self.weight_decay, self.keep = lr, weight_decay, keep
        self.schedule = Schedule(schedule, warmup=0.02 if schedule == "cosine" else 0.0)
        self.neighbours, self.charts = neighbours, charts
        self.chart_index = knn_charts(z, neighbours).neighbours
        self.shared = self.block * (neighbours + 1) >= len(z)
        count = -(-len(z) // self.block) * self.block
        self.positions = torch.arange(count, device=z.device).clamp(max=len(z) - 1).view(-1, self.block)
        self.order = self.positions.clone()
        self.weights = (torch.arange(count, device=z.device) < len(z)).to(z.dtype).view(-1, self.block)
        # What does not change from block to block.
        self.everyone = torch.arange(len(z), device=z.device)
        self.edges = torch.arange(self.block * (neighbours + 1), device=z.device).view(self.block, -1)
        self.learned = TransportedField(
            z.shape[1],
            self.predictor.dim,
            len(z),
            latent_dim=latent_dim,
            widths=widths,
            transport=self.transport,
            gate=gate,
            num_generators=num_generators,
            hidden=hidden,
            generators=generators,
        )
        self.learned.theta.data.copy_(self.predictor.start.expand_as(self.learned.theta))
        self.learned.anchors.copy_(z)
        self.rows = RowTable(self.learned.theta)

    def begin_epoch(self, epoch: int) -> None:
        """Put the anchors in a new order, the last one repeated to fill up the last block."""
        if self.shuffle:
            stream = torch_stream(self.problem.seed, "blocks", epoch)
            order = torch.randperm(len(self.problem.domains), generator=stream)
            self.order.copy_(order.to(self.order.device, non_blocking=True)[self.positions])

    def draw(self, step: Step) -> ChartBatch:
        """Return a block of anchors, their charts, and samples of every domain in them."""
        domains = self.problem.domains
        anchors = self.order[step.slot][0]
        targets = self.chart_index[anchors] if self.charts else random_charts(len(domains), self.neighbours, anchors)
        index, target = (self.everyone, targets) if self.shared else (targets.flatten(), self.edges)
        support = domains.draw(index, self.samples) if self.samples else domains.padded(index)
        return ChartBatch(support, target, self.weights[step.slot][0], self.shared)

    def measure(self) -> tuple[int, ...]:
        """Return how much the transport has to do on the charts, or on as many of them as tell."""
        z = self.problem.domains.z
        some = self.everyone[:: -(-len(z) // MEASURED)]
        targets = z[self.chart_index[some]]
        if not self.charts:  # any domain may be a target: the corners of the descriptors' box bound them all
            targets = torch.stack([z.amin(0), z.amax(0)]).expand(len(some), -1, -1)
        return self.learned.transport.measure(z[some], targets)

    def loss(self, batch: ChartBatch) -> dict[str, Tensor]:
        """Return the five terms of the block, summed over anchors and edges."""
        field, support = self.learned, batch.support
        theta = field.theta if batch.shared else self.rows.take(support.index)
        latent = field.coder.encode(theta)
        z = self.problem.domains.z[support.index]
        own_latent, own_theta = batch.at_anchors(latent), batch.at_anchors(theta)
        carried = field.transport(own_latent, z[batch.anchor], z[batch.target]).flatten(0, 1)
        # One call for both: the decoder's weights are almost all of the model, and so is their gradient.
        rebuilt, carried_theta = field.coder.decode(torch.cat([own_latent, carried])).split(
            [len(own_latent), len(carried)]
        )
        own, transported = self._risks(own_theta, carried_theta, batch)
        weight = batch.weight
        edges = weight[:, None].expand(batch.target.shape).flatten()
        return {
            "own risk": own @ weight * batch.target.shape[1],
            "transported risk": transported @ edges,
            "reconstruction": self.reconstruction * (_squares(rebuilt, own_theta) @ weight),
            "embedding": self.embedding * (_squares(carried, batch.at_targets(latent)) @ edges),
            "consistency": self.consistency * (_squares(carried_theta, batch.at_targets(theta)) @ edges),
        }

    def _risks(self, own: Tensor, carried: Tensor, batch: ChartBatch) -> tuple[Tensor, ...]:
        """Return the risks of own parameters on the anchors' domains and of carried ones on the targets'."""
        support = batch.support
        features = self.predictor.features(support.x)
        seen = torch.cat([batch.at_anchors(features), batch.at_targets(features)])
        where = torch.cat([batch.anchor, batch.target.flatten()])
        picked = DomainBatch(seen, support.y[where], support.weight[where], support.index[where])
        outputs = self.predictor.head(torch.cat([own, carried]), picked.x)
        return self.problem.risks(outputs, picked).split([len(own), len(carried)])

    def phases(self) -> list[Phase]:
        """Return the one joint phase."""
        domains = self.problem.domains
        steps_per_epoch = len(self.order)
        parameters, tables = list(self.parameters()), ()
        if not self.shared:  # rows that a block does not see are left alone
            parameters, tables = [p for p in parameters if p is not self.learned.theta], (self.rows,)
        return [
            Phase(
                name="joint",
                steps=self.epochs * steps_per_epoch,
                steps_per_epoch=steps_per_epoch,
                draw=self.draw,
                players=(Player(self.loss, parameters, self.lr, self.weight_decay, tables=tables),),
                seed=self.problem.seed,
                device=domains.z.device,
                schedule=self.schedule,
                keep=self.keep,
                begin_epoch=self.begin_epoch,
                work=Work(self.measure, self.learned.transport.adopt),
                captured=not domains.on_disk,
            )
        ]

    def field(self) -> TransportedField:
        """Return the transported field."""
        return self.learned


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Return the mean squared difference over coordinates of each row."""
    return (a - b).square().mean(-1)
