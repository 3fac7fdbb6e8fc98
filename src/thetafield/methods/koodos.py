"""Koodos: parameters that follow a differential equation in time."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from thetafield.data.domains import DomainBatch
from thetafield.fields.flow import FlowField
from thetafield.geometry.atlas import gather_rows
from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.phase import Phase, Player, Schedule, Step, Work
from thetafield.methods.space import Choice
from thetafield.options import Count, Natural, NonNegative, Positive
from thetafield.streams import torch_stream


@dataclass(frozen=True)
class SegmentBatch:
    """A few segments of consecutive domains; their members index into the distinct domains, which are read once.

    Args:
        support: Samples of the s distinct domains.
        rows: Place of each in time, shape (s,).
        start: Position of each segment's first domain in the support, shape (b,).
        member: Position of each segment's domains in the support, shape (b, L); padding repeats the last one.
        weight: Weight of each member, shape (b, L); every row sums to one, padding weighs nothing.
    """

    support: DomainBatch
    rows: Tensor
    start: Tensor
    member: Tensor
    weight: Tensor


@METHODS.register("koodos")
class Koodos(Method):
    """Free heads θ_j, a coder, and de/dt = k(e) from φ(θ_i) through each segment of consecutive domains.

    α [R_j(θ_j) + R_j(θ̂_j)] + β ‖θ_j − φ⁻¹φ(θ_j)‖² + γ ‖φ(θ_j) − ê_j‖² + β ‖θ_j − θ̂_j‖², means over coordinates and
    over a segment's members, the first one included. With linear k the solution is exp(tK), with neural k Runge-Kutta
    of fourth order in steps of 0.2. The defaults are the authors' for 2-Moons; for images they take α = 0.1, equal
    step sizes and neural dynamics. Their times run to 50 over training and test, about one unit a domain; here the
    unit is the mean distance of training times. Domains at equal times keep their order.

    Args:
        problem: The training side.
        epochs: Passes over all segments.
        block: Segments per step.
        segment: Largest number of domains in a segment; one begins at every domain.
        validation: Segments at the end that only judge: the epoch among the last fifth at which they are best is kept;
            at most a third of all.
        samples: Samples drawn from each domain per step; 0 takes all.
        start: "independent" draws every θ_j anew, as the authors do; "shared" starts all at one vector.
        dynamics: "linear", "skew" (K = B − Bᵀ, periodic drift), "low-rank" (m/4), or "neural".
        hidden: Width of neural dynamics.
        latent_dim: m.
        widths: Hidden widths of the coder.
        risk: α.
        consistency: β.
        embedding: γ.
        spread: Size of K at the start, as a share of a linear layer's: smaller ones keep long segments from exploding.
        schedule: "constant" as the authors have it, or "cosine" after 2 % of linear warm-up.
        lr: Adam's step size.
        head_lr: The same of the free heads.
        weight_decay: L2 coefficient.

    Reference:
        Cai et al., *Continuous Temporal Domain Generalization*, NeurIPS 2024 (arXiv 2405.16075).
    """

    name = "koodos"
    title = "Koodos"
    reference = "Cai et al., 2024"
    needs = Needs(descriptor=True, ordered=True, min_domains=2)
    space = {
        "dynamics": Choice(("linear", "skew", "neural")),
        "schedule": Choice(("constant", "cosine")),
        "epochs": Choice((300, 600)),
        "risk": Choice((0.1, 1.0)),
        "start": Choice(("independent", "shared")),
    }

    def __init__(
        self,
        problem: Problem,
        *,
        epochs: Count = 300,
        block: Count = 5,
        segment: Count = 10,
        validation: Natural = 5,
        samples: Natural = 0,
        start: Literal["independent", "shared"] = "independent",
        dynamics: Literal["linear", "skew", "low-rank", "neural"] = "linear",
        hidden: Count = 128,
        latent_dim: Count = 32,
        widths: tuple[Count, ...] = (1024, 512, 128),
        risk: NonNegative = 1.0,
        consistency: NonNegative = 100.0,
        embedding: NonNegative = 10.0,
        spread: Positive = 1.0,
        schedule: Literal["constant", "cosine"] = "constant",
        lr: Positive = 1e-3,
        head_lr: Positive = 1e-2,
        weight_decay: NonNegative = 1e-4,
    ) -> None:
        super().__init__(problem)
        z = problem.domains.z
        count = len(z)
        self.epochs, self.block, self.segment, self.samples = epochs, block, min(segment, count), samples
        self.validation = min(validation, count // 3)
        self.risk, self.consistency, self.embedding = risk, consistency, embedding
        self.lr, self.head_lr, self.weight_decay = lr, head_lr, weight_decay
        self.order = torch.argsort(z[:, 0], stable=True)  # rows of the field are domains in time
        self.learned = FlowField(
            z.shape[1], self.predictor.dim, count, latent_dim, widths, dynamics=dynamics, hidden=hidden
        )
        starts = self.predictor.fresh_starts(count) if start == "independent" else self.predictor.start[None]
        self.learned.theta.data.copy_(starts.expand_as(self.learned.theta))
        self.learned.anchors.copy_(z[self.order])
        for parameter in self.learned.flow.parameters():
            parameter.data.mul_(spread)
        self.schedule = Schedule(schedule, warmup=0.02 if schedule == "cosine" else 0.0)

    def segments(self, starts: Tensor, samples: int) -> SegmentBatch:
        """Return the segments that begin at the given places in time, with that many samples of a domain, or all."""
        domains, device = self.problem.domains, self.problem.domains.z.device
        place, weight = self.places(starts)
        rows, member = torch.unique(place, return_inverse=True)
        rows, member = rows.to(device, non_blocking=True), member.to(device, non_blocking=True)
        index = self.order.to(device)[rows]
        support = domains.draw(index, samples) if samples else domains.padded(index)
        return SegmentBatch(support, rows, member[:, 0], member, weight.to(device, non_blocking=True))

    def places(self, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the places in time of the members of segments, the last one repeated as padding, and their weights."""
        place, last = starts[:, None] + torch.arange(self.segment), len(self.problem.domains) - 1
        inside = (place <= last).to(self.problem.domains.z.dtype)
        return place.clamp(max=last), inside / inside.sum(1, keepdim=True)

    def begin_epoch(self, epoch: int) -> None:
        """Put the segments in a new order."""
        stream = torch_stream(self.problem.seed, "segments", epoch)
        count = len(self.problem.domains) - self.validation
        self.blocks = torch.randperm(count, generator=stream).split(self.block)

    def draw(self, step: Step) -> SegmentBatch:
        """Return the next segments of the epoch."""
        return self.segments(self.blocks[int(step.slot)], self.samples)

    def measure(self) -> tuple[int, ...]:
        """Return how much the flow has to do on all segments."""
        time = self.learned.times(self.learned.anchors[:, 0])
        return self.learned.flow.measure(time[self.places(torch.arange(len(time)))[0]] - time[:, None])

    def spans(self, batch: SegmentBatch) -> Tensor:
        """Return the time from each segment's start to its members, shape (b, L)."""
        time = self.learned.times(self.learned.anchors[batch.rows, 0])
        return time[batch.member] - time[batch.start][:, None]

    def loss(self, batch: SegmentBatch) -> dict[str, Tensor]:
        """Return the five terms, means over the segments of the batch."""
        field, support, member = self.learned, batch.support, batch.member.flatten()
        theta = field.theta[batch.rows]
        latent = field.coder.encode(theta)
        moved = field.flow(gather_rows(latent, batch.start), self.spans(batch)).flatten(0, 1)
        rebuilt, carried = field.coder.decode(torch.cat([latent, moved])).split([len(latent), len(moved)])
        features = self.predictor.features(support.x)
        own = self.problem.risks(self.predictor.head(theta, features), support)
        at = DomainBatch(
            gather_rows(features, member), support.y[member], support.weight[member], support.index[member]
        )
        transported = self.problem.risks(self.predictor.head(carried, at.x), at)
        # What a domain's own terms weigh: the sum of its weights in all segments.
        weight = batch.weight.flatten() / len(batch.start)
        share = weight @ torch.nn.functional.one_hot(member, len(own)).to(weight)
        squares = ((theta - rebuilt).square().mean(1) * share).sum()
        away = (gather_rows(theta, member) - carried).square().mean(1)
        apart = (gather_rows(latent, member) - moved).square().mean(1)
        return {
            "own risk": self.risk * (own * share).sum(),
            "carried risk": self.risk * (transported * weight).sum(),
            "reconstruction": self.consistency * squares,
            "embedding": self.embedding * (apart * weight).sum(),
            "consistency": self.consistency * (away * weight).sum(),
        }

    def judge(self) -> Tensor:
        """Return the loss of the segments at the end, which train nothing."""
        count = len(self.problem.domains)
        return torch.stack(
            list(self.loss(self.segments(torch.arange(count - self.validation, count), 0)).values())
        ).sum()

    def phases(self) -> list[Phase]:
        """Return the one joint phase."""
        heads = self.learned.theta
        parameters = [heads, *(p for p in self.parameters() if p is not heads)]
        rates = (self.head_lr / self.lr, *[1.0] * (len(parameters) - 1))
        domains = self.problem.domains
        steps_per_epoch = -(-(len(domains) - self.validation) // self.block)
        return [
            Phase(
                name="joint",
                steps=self.epochs * steps_per_epoch,
                steps_per_epoch=steps_per_epoch,
                draw=self.draw,
                seed=self.problem.seed,
                device=domains.z.device,
                players=(Player(self.loss, parameters, self.lr, self.weight_decay, rates=rates),),
                schedule=self.schedule,
                keep="best" if self.validation else "last",
                judge=self.judge if self.validation else None,
                judge_from=0.8,
                begin_epoch=self.begin_epoch,
                work=Work(self.measure, self.learned.flow.adopt),
                captured=False,  # the last block is smaller, and the distinct domains of a block vary in number
            )
        ]

    def field(self) -> FlowField:
        """Return the flow field."""
        return self.learned
