"""DRAIN: parameters generated one after another by a recurrent network."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.fields.sequence import SequenceField
from thetafield.methods.base import METHODS, Method, Needs, Problem
from thetafield.methods.phase import Phase, Player, Step
from thetafield.methods.space import LR, Choice
from thetafield.options import Count, NonNegative, Positive
from thetafield.predictors.perceptron import perceptron
from thetafield.streams import torch_stream


@dataclass(frozen=True)
class TimedBatch:
    """A few samples of one domain with its place in time.

    Args:
        samples: The samples, b = 1; fewer than a mini-batch are filled up with samples that weigh nothing.
        place: How many training domains come before it, shape (1,).
    """

    samples: DomainBatch
    place: Tensor


@METHODS.register("drain")
class DRAIN(Method):
    """An LSTM whose input is the encoded last θ and whose decoded output is the next one: one step per mini-batch.

    Domains are visited in order, each for some epochs; state and θ are carried on without gradient, as in the authors'
    code (the skip connection of their paper is not in it). The first step starts from noise through three learned
    maps. The future is one step from the last state, never advanced: all future domains share one θ. The loss is the
    problem's, the authors' is the squared error for numbers. A shared backbone is trained along; the head is generated.
    Domains at equal times keep their order. A mini-batch with fewer samples is filled up with samples that weigh
    nothing, which layers that normalise over a batch would see.

    Args:
        problem: The training side.
        epochs: Epochs on each domain; None takes 20 for classes and 60 for numbers.
        batch: Samples of a mini-batch; a domain with fewer is one batch.
        latent_dim: Width of the LSTM and of the noise.
        hidden: Width between latent and θ, both ways.
        lr: Adam's step size.
        weight_decay: L2 coefficient.

    Reference:
        Bai et al., *Temporal Domain Generalization with Drift-Aware Dynamic Neural Networks*, ICLR 2023
        (arXiv 2205.10664).
    """

    name = "drain"
    title = "DRAIN"
    reference = "Bai et al., 2023"
    needs = Needs(descriptor=True, ordered=True)
    space = {"lr": LR, "epochs": Choice((5, 10, 20, 40)), "latent_dim": Choice((16, 32, 64)), "hidden": Choice((8, 32))}
    revision = 1  # Adam counts the first step for the encoder too
    begun: Tensor
    state: Tensor
    memory: Tensor
    generated: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        epochs: Count | None = None,
        batch: Count = 16,
        latent_dim: Count = 16,
        hidden: Count = 8,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem)
        z = problem.domains.z
        default = 20 if problem.loss == "cross_entropy" else 60
        self.epochs, self.batch = epochs or default, batch
        self.lr, self.weight_decay = lr, weight_decay
        self.order = torch.argsort(z[:, 0], stable=True)
        self.sizes = problem.domains.sizes[self.order].tolist()
        self.first_rows = problem.domains.offsets[self.order].tolist()
        lengths = [self.epochs * -(-size // batch) for size in self.sizes]
        self.starts = [0, *accumulate(lengths)]  # the first step on each domain, and the number of all
        self.cell = nn.LSTMCell(latent_dim, latent_dim)
        self.beginning = nn.ModuleList(nn.Sequential(nn.Linear(latent_dim, latent_dim), nn.Tanh()) for _ in range(3))
        self.encoder = perceptron([self.predictor.dim, hidden, latent_dim])
        self.decoder = perceptron([latent_dim, hidden, self.predictor.dim])
        self.register_buffer("noise", torch.randn(1, latent_dim))
        self.register_buffer("begun", torch.zeros(1, 1, dtype=torch.bool))
        self.register_buffer("state", torch.zeros(1, latent_dim))
        self.register_buffer("memory", torch.zeros(1, latent_dim))
        self.register_buffer("generated", torch.zeros(1, self.predictor.dim))
        self.learned = SequenceField(z.shape[1], self.predictor.dim, len(z))
        self.learned.anchors.copy_(z[self.order])
        # The mini-batches of the epoch under way: their places in time, their samples, and what these weigh.
        self.steps_per_epoch = -(-max(self.sizes) // batch)
        self.place = torch.zeros(self.steps_per_epoch, dtype=torch.long, device=z.device)
        self.rows = torch.zeros(self.steps_per_epoch, min(batch, max(self.sizes)), dtype=torch.long, device=z.device)
        self.weight = torch.zeros(self.rows.shape, dtype=z.dtype, device=z.device)

    def advance(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next (θ, state, memory), from noise the first time and from the last ones after that."""
        started = [part(self.noise) for part in self.beginning]
        # Copies: the buffers are written before the gradient is asked for.
        last = [self.encoder(self.generated.clone()), self.state.clone(), self.memory.clone()]
        begun = self.begun.clone()
        given, state, memory = (torch.where(begun, *pair) for pair in zip(last, started, strict=True))
        state, memory = self.cell(given, (state, memory))
        return self.decoder(state), state, memory

    def loss(self, batch: TimedBatch) -> dict[str, Tensor]:
        """Return the risk of the next θ, and carry the recurrence on."""
        theta, state, memory = self.advance()
        outputs = self.predictor(theta, batch.samples.x)
        with torch.no_grad():
            self.begun.fill_(True)
            self.state.copy_(state)
            self.memory.copy_(memory)
            self.generated.copy_(theta)
            self.learned.theta.index_copy_(0, batch.place, theta)
        return {"risk": self.problem.risks(outputs, batch.samples).mean()}

    def start_anew(self) -> None:
        """Let the next step be the first one."""
        self.begun.fill_(False)

    def begin_epoch(self, epoch: int) -> None:
        """Lay out the next mini-batches of the domains whose turn it is, shuffled anew in every pass."""
        first = epoch * self.steps_per_epoch
        steps = range(first, min(first + self.steps_per_epoch, self.starts[-1]))
        rows = torch.zeros(self.rows.shape, dtype=torch.long)
        weight = torch.zeros(self.weight.shape, dtype=self.weight.dtype)
        places = [bisect_right(self.starts, step) - 1 for step in steps]
        shuffled: dict[tuple[int, int], tuple[Tensor, ...]] = {}
        for slot, (step, place) in enumerate(zip(steps, places, strict=True)):
            passes, number = divmod(step - self.starts[place], -(-self.sizes[place] // self.batch))
            if (place, passes) not in shuffled:
                stream = torch_stream(self.problem.seed, "samples", place, passes)
                shuffled[place, passes] = torch.randperm(self.sizes[place], generator=stream).split(self.batch)
            within = shuffled[place, passes][number]
            rows[slot] = self.first_rows[place]
            rows[slot, : len(within)] += within
            weight[slot, : len(within)] = 1 / len(within)
        self.place[: len(places)] = torch.tensor(places).to(self.place)
        self.rows.copy_(rows)
        self.weight.copy_(weight)

    def draw(self, step: Step) -> TimedBatch:
        """Return the next mini-batch of the epoch."""
        place = self.place[step.slot]
        samples = self.problem.domains.take(self.rows[step.slot], self.weight[step.slot], self.order[place])
        return TimedBatch(samples, place)

    def phases(self) -> list[Phase]:
        """Return the one phase through all domains in order."""
        learned = [p for p in self.parameters() if p is not self.learned.theta]
        return [
            Phase(
                name="recurrence",
                steps=self.starts[-1],
                steps_per_epoch=self.steps_per_epoch,
                draw=self.draw,
                players=(Player(self.loss, learned, self.lr, self.weight_decay),),
                seed=self.problem.seed,
                device=self.problem.domains.z.device,
                begin=self.start_anew,
                begin_epoch=self.begin_epoch,
                captured=not self.problem.domains.on_disk,
            )
        ]

    @torch.no_grad()
    def field(self) -> SequenceField:
        """Return the sequence, its last row one step beyond the last domain."""
        self.learned.theta[len(self.order)] = self.advance()[0][0]
        return self.learned
