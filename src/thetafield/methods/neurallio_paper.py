"""NeuralLio as in the paper: per-domain parameters, a coder, and a Lie transport trained over charts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.errors import OptionError
from thetafield.fields.transported import TransportedField
from thetafield.geometry.atlas import gather_rows, knn_charts, random_charts
from thetafield.methods.base import METHODS, Method, Needs, Phase, Player, Problem, Schedule
from thetafield.methods.space import LR, Choice
from thetafield.options import Count, Natural, NonNegative, Positive
from thetafield.streams import torch_stream


@dataclass(frozen=True)
class ChartBatch:
    """A block of anchors with their charts; edges index into the distinct domains, which are read once.

    Args:
        support: Samples of the s distinct domains of the block.
        anchor: Position of each anchor in the support, shape (b,).
        target: Position of each edge's target in the support, shape (b, k + 1).
    """

    support: DomainBatch
    anchor: Tensor
    target: Tensor


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
        # Blocks are put together on the host, so that a step on a GPU never waits for an index.
        self.chart_index = knn_charts(z, neighbours).neighbours.cpu()
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

    def batches(self, epoch: int) -> Iterator[ChartBatch]:
        """Yield one epoch of blocks; the transport's work is fixed from all charts before the first."""
        domains, seed = self.problem.domains, self.problem.seed
        device, count = domains.z.device, len(domains)
        targets = domains.z[self.chart_index.to(device)]
        if not self.charts:  # any domain may be a target: the corners of the descriptors' box bound them all
            corners = torch.stack([domains.z.amin(0), domains.z.amax(0)])
            targets = corners.expand(count, -1, -1)
        self.learned.transport.calibrate(domains.z, targets)
        order = torch.arange(count)
        if self.shuffle:
            order = torch.randperm(count, generator=torch_stream(seed, "blocks", epoch))
        for step, anchors in enumerate(order.split(self.block)):
            targets = self.chart_index[anchors]
            if not self.charts:
                stream = torch_stream(seed, "random charts", epoch, step)
                targets = random_charts(count, self.neighbours, anchors, stream)
            distinct, target = torch.unique(targets, return_inverse=True)
            index = distinct.to(device, non_blocking=True)
            if self.samples:
                stream = torch_stream(seed, "samples", epoch, step, device=device)
                support = domains.draw(index, self.samples, stream)
            else:
                support = domains.padded(index)
            target = target.to(device, non_blocking=True)
            yield ChartBatch(support, target[:, 0], target)

    def loss(self, batch: ChartBatch) -> dict[str, Tensor]:
        """Return the five terms of the block, summed over anchors and edges."""
        field, problem, support = self.learned, self.problem, batch.support
        anchor, edge = batch.anchor, batch.target.flatten()
        theta = field.theta[support.index]
        latent = field.coder.encode(theta)
        z = problem.domains.z[support.index]
        carried = field.transport(latent[anchor], z[anchor], z[batch.target]).flatten(0, 1)
        # One call for both: the decoder's weights are almost all of the model, and so is their gradient.
        rebuilt, carried_theta = field.coder.decode(torch.cat([latent[anchor], carried])).split(
            [len(anchor), len(edge)]
        )
        own, transported = self._risks(theta[anchor], carried_theta, support, torch.cat([anchor, edge]))
        return {
            "own risk": own.sum() * batch.target.shape[1],
            "transported risk": transported.sum(),
            "reconstruction": self.reconstruction * _squares(rebuilt, theta[anchor]),
            "embedding": self.embedding * _squares(carried, gather_rows(latent, edge)),
            "consistency": self.consistency * _squares(carried_theta, gather_rows(theta, edge)),
        }

    def _risks(self, own: Tensor, carried: Tensor, support: DomainBatch, where: Tensor) -> tuple[Tensor, ...]:
        """Return the risks of own and carried parameters, each on the domain at `where` in the support."""
        features = self.predictor.features(support.x)
        picked = DomainBatch(
            gather_rows(features, where), support.y[where], support.weight[where], support.index[where]
        )
        outputs = self.predictor.head(torch.cat([own, carried]), picked.x)
        return self.problem.risks(outputs, picked).split([len(own), len(carried)])

    def phases(self) -> list[Phase]:
        """Return the one joint phase."""
        return [
            Phase(
                name="joint",
                epochs=self.epochs,
                steps_per_epoch=-(-len(self.problem.domains) // self.block),
                batches=self.batches,
                players=(Player(self.loss, list(self.parameters()), self.lr, self.weight_decay),),
                schedule=self.schedule,
                keep=self.keep,
            )
        ]

    def field(self) -> TransportedField:
        """Return the transported field."""
        return self.learned


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Return Σ over rows of the mean squared difference over coordinates."""
    return (a - b).square().mean(-1).sum()
