"""What a phase of training is: whose losses are minimised, on which batches, for how long."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from thetafield.fields.rows import RowTable
from thetafield.streams import reseed


@dataclass(frozen=True)
class Schedule:
    """Factor of the learning rate over training progress in [0, 1].

    Args:
        kind: "constant", or "cosine" to fall to zero.
        warmup: Share of training over which the factor first rises linearly.
        start: Where this phase begins in the progress of several that share one schedule.
        end: Where it ends.

    Example:
        >>> Schedule("cosine", warmup=0.0)(0.5)
        0.5
    """

    kind: Literal["constant", "cosine"] = "constant"
    warmup: float = 0.0
    start: float = 0.0
    end: float = 1.0

    def __call__(self, progress: float) -> float:
        """Return the factor at `progress` through the phase."""
        progress = self.start + (self.end - self.start) * progress
        rise = min(1.0, progress / self.warmup) if self.warmup > 0 else 1.0
        if self.kind == "constant":
            return rise
        return rise * 0.5 * (1 + math.cos(math.pi * progress))


def nothing() -> None:
    """Begin a phase with what the last one left."""


@dataclass(frozen=True)
class Player:
    """One loss and the parameters that follow it, each player under its own Adam.

    Most phases have one; adversarial methods have two whose losses oppose each other.

    Args:
        loss: Terms of the loss of a batch by name; the sum is minimised over `parameters` alone.
        parameters: What is trained.
        lr: Adam's step size.
        weight_decay: L2 coefficient inside Adam.
        betas: Adam's averaging factors.
        rates: Factor of `lr` for each parameter; empty where it is one for all.
        tables: Tables of which a step trains only the rows that it takes.
    """

    loss: Callable[[Any], dict[str, Tensor]]
    parameters: list[nn.Parameter]
    lr: float = 1e-3
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    rates: tuple[float, ...] = ()
    tables: tuple[RowTable, ...] = ()


@dataclass(frozen=True)
class Step:
    """Which step of a phase is to be drawn.

    A captured step runs this Python once and is replayed after that, so what it draws may depend on the clock, on the
    generators, which are seeded anew before every step, and on tensors that stay in place: never on `number`.

    Args:
        number: The step's number in the phase, from zero, on the host.
        slot: Its number within the epoch, shape (1,), on the device.
    """

    number: int
    slot: Tensor


def _no_order(epoch: int) -> None:
    """Let every epoch be like the others."""


@dataclass(frozen=True)
class Work:
    """How much a step does, where that follows from numbers on the device, such as the norm of a generator.

    Args:
        measure: Read the numbers back and return the amount, a tuple of numbers that JSON can hold.
        adopt: Let the steps from here on do that amount.
    """

    measure: Callable[[], tuple[int, ...]]
    adopt: Callable[[tuple[int, ...]], None]


@dataclass(frozen=True)
class Phase:
    """A stretch of training: whose losses are minimised, on which batches, for how long.

    Args:
        name: How it is called in progress, history and messages.
        steps: Number of steps.
        steps_per_epoch: Steps between two records of the history; the last epoch may be shorter.
        draw: Returns the batch of a step, of the same shapes every time.
        players: The losses with their parameters; the first one's loss is the phase's loss.
        seed: Root seed of its draws.
        device: Where it runs.
        turns: Which player acts in each step, over and over; empty where all act in every step, in order.
        schedule: Factor of the step sizes.
        keep: "last" keeps the final parameters, "best" those after the epoch with the lowest loss.
        judge: The loss that "best" means, asked after an epoch; the epoch's training loss where it is None.
        judge_from: Share of the epochs after which "best" begins to look.
        begin: Called once before the first epoch.
        finish: Called once after the last epoch.
        leaves: What it leaves behind beside its parameters, where it recurs.
        begin_epoch: Called before every epoch, to put the domains in a new order.
        work: What must be measured now and then to know how much a step does.
        captured: Whether a step may be recorded once and replayed: fixed shapes, and nothing read by the host.
        share: This rank's factor of the losses, with which those of all ranks sum to the loss of the whole batch.
        recurs: What it depends on beside its start and its length, where other trainings on the same problem may begin
            with it too and take over what it leaves; None where no other does.
    """

    name: str
    steps: int
    steps_per_epoch: int
    draw: Callable[[Step], Any]
    players: tuple[Player, ...]
    seed: int
    device: torch.device
    turns: tuple[int, ...] = ()
    schedule: Schedule = Schedule()
    keep: Literal["last", "best"] = "last"
    judge: Callable[[], Tensor] | None = None
    judge_from: float = 0.0
    begin: Callable[[], None] = nothing
    finish: Callable[[], None] = nothing
    leaves: tuple[Tensor, ...] = ()
    begin_epoch: Callable[[int], None] = _no_order
    work: Work | None = None
    captured: bool = True
    share: float = 1.0
    recurs: tuple[float, ...] | None = None

    @property
    def epochs(self) -> int:
        """Number of epochs."""
        return math.ceil(self.steps / self.steps_per_epoch)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All that is trained in this phase, tables of rows included."""
        return [p for player in self.players for p in (*player.parameters, *(t.table for t in player.tables))]

    def acting(self, step: int) -> tuple[int, ...]:
        """Return which players act in a step, in order."""
        return (self.turns[step % len(self.turns)],) if self.turns else tuple(range(len(self.players)))

    def steps_of(self, epoch: int) -> range:
        """Return the numbers of an epoch's steps."""
        start = epoch * self.steps_per_epoch
        return range(start, min(start + self.steps_per_epoch, self.steps))

    def reseed(self, step: int) -> None:
        """Seed the device's generator for a step: its draws are a function of the seed and the step alone."""
        reseed(self.device, self.seed, self.name, step)

    def batches(self, epoch: int) -> Iterator[Any]:
        """Yield the batches of an epoch, as training meets them."""
        if self.work is not None:
            self.work.adopt(self.work.measure())
        self.begin_epoch(epoch)
        for slot, step in enumerate(self.steps_of(epoch)):
            self.reseed(step)
            yield self.draw(Step(step, torch.tensor([slot], device=self.device)))
