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
        samples: The samples, b = 1.
        place: How many training domains come before it.
        first: Whether this is the very first batch, at which the recurrence begins.
    """

    samples: DomainBatch
    place: int
    first: bool


@METHODS.register("drain")
class DRAIN(Method):
    """An LSTM whose input is the encoded last θ and whose decoded output is the next one: one step per mini-batch.

    Domains are visited in order, each for some epochs; state and θ are carried on without gradient, as in the authors'
    code (the skip connection of their paper is not in it). The first step starts from noise through three learned
    maps. The future is one step from the last state, never advanced: all future domains share one θ. The loss is the
    problem's, the authors' is the squared error for numbers. A shared backbone is trained along; the head is generated.
    Domains at equal times keep their order.

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
        self.order = torch.argsort(z[:, 0], stable=True).tolist()
        self.sizes = problem.domains.sizes[self.order].tolist()
        lengths = [self.epochs * -(-size // batch) for size in self.sizes]
        self.starts = [0, *accumulate(lengths)]  # the first step on each domain, and the number of all
        self.cell = nn.LSTMCell(latent_dim, latent_dim)
        self.beginning = nn.ModuleList(nn.Sequential(nn.Linear(latent_dim, latent_dim), nn.Tanh()) for _ in range(3))
        self.encoder = perceptron([self.predictor.dim, hidden, latent_dim])
        self.decoder = perceptron([latent_dim, hidden, self.predictor.dim])
        self.register_buffer("noise", torch.randn(1, latent_dim))
        self.register_buffer("state", torch.zeros(1, latent_dim))
        self.register_buffer("memory", torch.zeros(1, latent_dim))
        self.register_buffer("generated", torch.zeros(1, self.predictor.dim))
        self.learned = SequenceField(z.shape[1], self.predictor.dim, len(z))
        self.learned.anchors.copy_(z[self.order])

    def advance(self, first: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next (θ, state, memory), from noise or from the last ones."""
        if first:
            given, state, memory = (part(self.noise) for part in self.beginning)
        else:
            given, state, memory = self.encoder(self.generated), self.state, self.memory
        state, memory = self.cell(given, (state, memory))
        return self.decoder(state), state, memory

    def loss(self, batch: TimedBatch) -> dict[str, Tensor]:
        """Return the risk of the next θ, and carry the recurrence on."""
        theta, state, memory = self.advance(batch.first)
        outputs = self.predictor(theta, batch.samples.x)
        self.state, self.memory, self.generated = state.detach(), memory.detach(), theta.detach()
        self.learned.theta[batch.place] = self.generated[0]
        return {"risk": self.problem.risks(outputs, batch.samples).mean()}

    def draw(self, step: Step) -> TimedBatch:
        """Return the next mini-batch of the domain whose turn it is, shuffled anew in every pass."""
        domains, device = self.problem.domains, self.problem.domains.z.device
        place = bisect_right(self.starts, step.number) - 1
        index = torch.tensor([self.order[place]], device=device)
        passes, number = divmod(step.number - self.starts[place], -(-self.sizes[place] // self.batch))
        stream = torch_stream(self.problem.seed, "samples", place, passes)
        shuffled = torch.randperm(self.sizes[place], generator=stream)
        within = shuffled.split(self.batch)[number].to(device)
        weight = torch.full((1, len(within)), 1 / len(within), dtype=domains.z.dtype, device=device)
        samples = domains.take((domains.offsets[index] + within)[None], weight, index)
        return TimedBatch(samples, place, first=step.number == 0)

    def phases(self) -> list[Phase]:
        """Return the one phase through all domains in order."""
        learned = [p for p in self.parameters() if p is not self.learned.theta]
        return [
            Phase(
                name="recurrence",
                steps=self.starts[-1],
                steps_per_epoch=-(-max(self.sizes) // self.batch),
                draw=self.draw,
                players=(Player(self.loss, learned, self.lr, self.weight_decay),),
                seed=self.problem.seed,
                device=self.problem.domains.z.device,
                captured=False,  # the state goes from step to step, and the last mini-batch of a pass is smaller
            )
        ]

    @torch.no_grad()
    def field(self) -> SequenceField:
        """Return the sequence, its last row one step beyond the last domain."""
        self.learned.theta[len(self.order)] = self.advance(first=False)[0][0]
        return self.learned
