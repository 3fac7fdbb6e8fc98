"""NeuralLio as in the paper: per-domain parameters, a coder, and a Lie transport trained over charts."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.errors import OptionError
from thetafield.fields.base import ParameterField
from thetafield.fields.rows import RowTable
from thetafield.fields.transported import TransportedField
from thetafield.geometry.atlas import knn_charts, random_charts
from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.chart_batch import ChartBatch
from thetafield.methods.phase import Phase, Player, Schedule, Step, Work
from thetafield.methods.space import LR, Choice
from thetafield.options import Count, Natural, NonNegative, Positive
from thetafield.ranks import ALONE
from thetafield.streams import torch_stream

TERMS = ("own risk", "transported risk", "reconstruction", "embedding", "consistency")
TABLE = 2**22  # rows of all domains that are listed once, instead of anew in every step
MEASURED = 4096  # charts on which the transport's norm is measured


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
        chart_weights: Weight of each descriptor coordinate in the distance that charts go by; None weighs all alike.
        gate: Whether the descriptor gate is used; the demo has none, and the paper's 2-Moons ablation lists none.
        latent_dim: m.
        num_generators: r; None takes one per descriptor coordinate.
        generators: "field" as in the paper; "constant", or "commuting" for laws that hold by construction.
        hidden: Width of the field network.
        coder: "perceptron" as in the paper, or "lean", a linear basis with small perceptrons.
        widths: Hidden widths of the perceptron coder.
        rank: Number of directions of the lean coder.
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
    projected: ClassVar[bool] = False
    divisible = True
    chart_index: Tensor

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
        chart_weights: tuple[NonNegative, ...] | None = None,
        gate: bool = False,
        latent_dim: Count = 32,
        num_generators: Count | None = None,
        generators: Literal["field", "constant", "commuting"] = "field",
        hidden: Count = 128,
        coder: Literal["perceptron", "lean"] = "perceptron",
        widths: tuple[Count, ...] = (1024, 512, 128),
        rank: Count = 64,
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
        weights = z.new_tensor(chart_weights or (1.0,) * z.shape[1])
        if len(weights) != z.shape[1]:
            raise OptionError(
                f"chart_weights has {len(weights)} numbers, but there are {z.shape[1]} descriptor coordinates."
            )
        self.register_buffer("chart_index", knn_charts(z * weights, neighbours).neighbours)
        self.shared = self.block * (neighbours + 1) >= len(z)
        count = -(-len(z) // self.block) * self.block
        self.positions = torch.arange(count, device=z.device).clamp(max=len(z) - 1).view(-1, self.block)
        self.order = self.positions.clone()
        self.weights = (torch.arange(count, device=z.device) < len(z)).to(z.dtype).view(-1, self.block)
        # Ranks take equal parts of a block's anchors, filled up with anchors that weigh nothing.
        own = -(-self.block // problem.ranks.count)
        part = torch.arange(own, device=z.device) + own * problem.ranks.rank
        self.part = part.clamp(max=self.block - 1)
        self.weights = self.weights[:, self.part] * (part < self.block)
        self.compact = own * (neighbours + 1) >= len(z)
        # The domains of a block vary in number, which a GPU's recorded steps must not; elsewhere each is read once.
        self.distinct = not self.shared and z.device.type == "cpu"
        # What does not change from block to block.
        self.everyone = torch.arange(len(z), device=z.device)
        self.every_row: tuple[Tensor, Tensor] | None = None
        self.edges = torch.arange(self.block * (neighbours + 1), device=z.device).view(self.block, -1)
        self.learned = TransportedField(
            z.shape[1],
            self.predictor.dim,
            len(z),
            latent_dim=latent_dim,
            coder=coder,
            widths=widths,
            rank=rank,
            transport=self.transport,
            gate=gate,
            num_generators=num_generators,
            hidden=hidden,
            generators=generators,
            projected=self.projected,
        )
        self.whole = bool(self.weights.all())  # whether every anchor of every block counts
        self.mixing, self.owner = self._mixing()
        self.learned.theta.data.copy_(self.predictor.start.expand_as(self.learned.theta))
        self.learned.anchors.copy_(z)
        self.learned.chart_weights[: len(weights)] = weights
        self.learned.coder.start_at(self.predictor.start)
        # A table that is shared is small, and every rank has all of it.
        self.rows = RowTable(self.learned.theta, ALONE if self.shared else problem.ranks)

    @property
    def seen(self) -> Problem:
        """The problem as the joint phase sees it."""
        return self.problem

    def begin_epoch(self, epoch: int) -> None:
        """Put the anchors in a new order, the last one repeated to fill up the last block."""
        if self.shuffle:
            stream = torch_stream(self.problem.seed, "blocks", epoch)
            order = torch.randperm(len(self.problem.domains), generator=stream)
            self.order.copy_(order.to(self.order.device, non_blocking=True)[self.positions])

    def draw(self, step: Step) -> ChartBatch:
        """Return a block of anchors, their charts, and samples of every domain in them; of several ranks, its part."""
        domains = self.problem.domains
        anchors = self.order[step.slot][0]
        targets = self.chart_index[anchors] if self.charts else random_charts(len(domains), self.neighbours, anchors)
        if self.shared:
            index, target = self.everyone, targets
        elif self.distinct:
            index, target = torch.unique(targets, return_inverse=True)
        else:
            index, target = targets.flatten(), self.edges
        rows, weight = domains.drawn_rows(index, self.samples) if self.samples else self._all_rows(index)
        if self.problem.ranks.several:
            target = target[self.part]
            if not self.compact:
                picked, target = target.flatten(), self.edges[: len(self.part)]
                rows, weight, index = rows[picked], weight[picked], index[picked]
        support, once = self.seen.domains.take(rows, weight, index), self.distinct and not self.problem.ranks.several
        anchors_weigh = self.weights[0] if self.whole else self.weights[step.slot][0]
        return ChartBatch(support, target, anchors_weigh, self.compact or once)

    def _all_rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return all rows of the domains at `index`, from a table of all domains' rows where that is small."""
        domains = self.problem.domains
        if len(domains) * domains.longest > TABLE:
            return domains.padded_rows(index)
        if self.every_row is None:
            self.every_row = domains.padded_rows(self.everyone)
        rows, weight = self.every_row
        return rows[index], weight[index]

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
        theta = field.theta if self.shared and batch.shared else self.rows.take(support.index)
        latent = field.coder.encode(theta)
        z = self.problem.domains.z[support.index]
        own_latent, own_theta = batch.at_anchors(latent), batch.at_anchors(theta)
        targets = batch.at_targets(z).view(*batch.target.shape, -1)
        carried = field.transport(own_latent, batch.at_anchors(z), targets).flatten(0, 1)
        # One call for both: the decoder's weights are almost all of the model, and so is their gradient.
        decoded = field.coder.decode(torch.cat([own_latent, carried]))
        carried_theta = decoded.split([len(own_latent), len(carried)])[1]
        risks = self._risks(self.placed(torch.cat([own_theta, carried_theta]), batch, z), batch)
        apart = _squares(decoded, torch.cat([own_theta, batch.at_targets(theta)]))
        embedded = _squares(carried, batch.at_targets(latent))
        # All terms are sums of these with a few weights: one product instead of one sum for each.
        return dict(zip(TERMS, self.mixed(torch.cat([risks, apart, embedded]), batch.weight).unbind(), strict=True))

    def placed(self, theta: Tensor, batch: ChartBatch, z: Tensor) -> Tensor:
        """Return the heads of anchors and edges from what the charts carry, which is all of them here.

        Args:
            theta: Of the anchors, then of the edges, shape (b + b · (k + 1), D).
            batch: The block.
            z: Descriptors of its support.
        """
        return theta

    def mixed(self, rows: Tensor, weight: Tensor) -> Tensor:
        """Return the five terms from risks and distances of a block's b anchors and their edges.

        Args:
            rows: Own risks (b), transported risks (b · (k + 1)), distances of rebuilt parameters (b) and of carried
                ones (b · (k + 1)), and distances of carried latents (b · (k + 1)), one after the other.
            weight: Weight of each anchor, shape (b,).
        """
        if not self.whole:
            rows = rows * weight[self.owner]
        return self.mixing @ rows

    def _mixing(self) -> tuple[Tensor, Tensor]:
        """Return what each row of `mixed` weighs in each term, shape (5, rows), and the anchor it belongs to."""
        z, targets = self.problem.domains.z, self.neighbours + 1
        anchors = torch.arange(len(self.part), device=z.device)
        edges = anchors.repeat_interleave(targets)
        parts = [
            (anchors, 0, targets),  # own risks count once for every edge
            (edges, 1, 1.0),
            (anchors, 2, self.reconstruction),
            (edges, 4, self.consistency),
            (edges, 3, self.embedding),
        ]
        blank = [(z.new_zeros(5, len(owner)), z.new_tensor([term]).long(), size) for owner, term, size in parts]
        mixing = torch.cat([rows.index_fill_(0, term, size) for rows, term, size in blank], 1)
        return mixing, torch.cat([owner for owner, _, _ in parts])

    def _risks(self, theta: Tensor, batch: ChartBatch) -> Tensor:
        """Return the risks of own parameters on the anchors' domains, then of carried ones on the targets'."""
        support = batch.support
        features = self.seen.predictor.features(support.x)
        where = torch.cat([batch.anchor, batch.target.flatten()])
        if features.requires_grad and not batch.shared:  # slices: to pick rows with their gradient costs a product
            seen = torch.cat([batch.at_anchors(features), batch.at_targets(features)])
            picked = DomainBatch(seen, support.y[where], support.weight[where], support.index[where])
            return self.problem.risks(self.predictor.head(theta, seen), picked)
        return self.problem.head_risks(theta, features, support, where)

    def trained(self) -> list[nn.Parameter]:
        """Return what the joint phase moves."""
        return [*self.predictor.parameters(), *self.learned.parameters()]

    def phases(self) -> list[Phase]:
        """Return the one joint phase."""
        domains = self.problem.domains
        steps_per_epoch = len(self.order)
        parameters, tables = self.trained(), ()
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

    def field(self) -> ParameterField:
        """Return the transported field."""
        return self.learned


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Return the mean squared difference over coordinates of each row."""
    return nn.functional.mse_loss(a, b, reduction="none").mean(-1)
