"""What a method is: modules, phases of losses, and the field that comes out. It owns no optimiser and no test data."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch, DomainSet
from thetafield.errors import NeedError
from thetafield.fields.base import ParameterField
from thetafield.fields.direct import Answers
from thetafield.methods.space import Space
from thetafield.predictors.base import Predictor
from thetafield.registry import Registry
from thetafield.streams import torch_stream
from thetafield.typing import Outputs, Risks

Loss = Literal["cross_entropy", "absolute_error", "squared_error"]


@dataclass(frozen=True)
class Problem:
    """Everything a method may know: the training side only.

    Args:
        domains: Training domains with scaled descriptors, on the device of training.
        predictor: The template g(x; θ).
        loss: Loss of a sample.
        seed: Root seed of all draws.
    """

    domains: DomainSet
    predictor: Predictor
    loss: Loss
    seed: int

    def risks(self, outputs: Outputs, batch: DomainBatch) -> Risks:
        """Return R_e, the weighted mean loss of each domain in the batch."""
        if self.loss == "cross_entropy":
            each = nn.functional.cross_entropy(outputs.flatten(0, 1), batch.y.flatten(), reduction="none")
            each = each.view_as(batch.weight)
        else:
            difference = outputs - batch.y
            each = (difference.abs() if self.loss == "absolute_error" else difference.square()).mean(-1)
        return (each * batch.weight).sum(1)


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


def _nothing() -> None:
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
    """

    loss: Callable[[Any], dict[str, Tensor]]
    parameters: list[nn.Parameter]
    lr: float = 1e-3
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    rates: tuple[float, ...] = ()


@dataclass(frozen=True)
class Phase:
    """A stretch of training: whose losses are minimised, on which batches, for how long.

    Args:
        name: How it is called in progress, history and messages.
        epochs: Number of epochs.
        steps_per_epoch: Largest number of batches an epoch yields.
        batches: Yields the batches of an epoch; a function of the epoch and the seed alone, so that a run resumes.
        players: The losses with their parameters; the first one's loss is the phase's loss.
        turns: Which player acts in each step, over and over; empty where all act in every step, in order.
        schedule: Factor of the step sizes.
        keep: "last" keeps the final parameters, "best" those after the epoch with the lowest loss.
        judge: The loss that "best" means, asked after an epoch; the epoch's training loss where it is None.
        judge_from: Share of the epochs after which "best" begins to look.
        begin: Called once before the first epoch.
    """

    name: str
    epochs: int
    steps_per_epoch: int
    batches: Callable[[int], Iterator[Any]]
    players: tuple[Player, ...]
    turns: tuple[int, ...] = ()
    schedule: Schedule = Schedule()
    keep: Literal["last", "best"] = "last"
    judge: Callable[[], Tensor] | None = None
    judge_from: float = 0.0
    begin: Callable[[], None] = _nothing

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All that is trained in this phase."""
        return [parameter for player in self.players for parameter in player.parameters]

    def acting(self, step: int) -> list[int]:
        """Return which players act in a step, in order."""
        return [self.turns[step % len(self.turns)]] if self.turns else list(range(len(self.players)))


@dataclass(frozen=True)
class Needs:
    """What a method needs of the data; where a need is not met a table says N/A."""

    descriptor: bool = False
    ordered: bool = False
    classification: bool = False
    min_domains: int = 1


class Learner(ABC):
    """A way to learn from training domains. The keyword-only constructor arguments are its options.

    Args:
        problem: The training side.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    needs: ClassVar[Needs] = Needs()
    space: ClassVar[Space] = {}

    @abstractmethod
    def __init__(self, problem: Problem) -> None: ...

    @classmethod
    def check_needs(cls, domains: DomainSet, ordered: bool = False, where: str = "the data") -> None:
        """Raise a sentence where the training domains, called `where`, lack what the method needs."""
        width, names = domains.z.shape[1], ", ".join(domains.descriptors)
        if cls.needs.descriptor and not width:
            raise NeedError(f"{cls.title} needs descriptors z, but none were given: pass z, or use method 'erm'.")
        if cls.needs.ordered and width != 1:
            listed = f": {names}" if names else ""
            raise NeedError(f"{cls.title} needs one ordered descriptor coordinate, but {where} has {width}{listed}.")
        if cls.needs.ordered and not ordered:
            raise NeedError(f"{cls.title} needs one ordered descriptor coordinate, but {names} of {where} is no order.")
        if cls.needs.classification and not domains.classification:
            raise NeedError(f"{cls.title} needs classes, but the target of {where} is a number.")
        if len(domains) < cls.needs.min_domains:
            raise NeedError(
                f"{cls.title} needs at least {cls.needs.min_domains} training domains, but {where} has {len(domains)}."
            )


class DirectMethod(Learner):
    """A method without parameters θ: it learns the answers for (x, z) as such."""

    @abstractmethod
    def learn(self, report: Callable[[int, int], None]) -> Answers:
        """Return what answers for any (x, z); `report` takes the rounds done and the rounds in all."""


class Method(Learner, nn.Module):
    """A way to learn a parameter field, by phases of losses.

    Args:
        problem: The training side.
    """

    # Whether renumbering the domains leaves the result the same: not where domains are drawn at random for each batch,
    # or are the classes of a discriminator.
    renumberable: ClassVar[bool] = True

    def __init__(self, problem: Problem) -> None:
        nn.Module.__init__(self)
        self.problem = problem
        self.predictor = problem.predictor

    def sampled_phase(
        self,
        name: str,
        steps: int,
        samples: int,
        players: tuple[Player, ...],
        turns: tuple[int, ...] = (),
        schedule: Schedule = Schedule("cosine"),  # noqa: B008  (frozen)
        begin: Callable[[], None] = _nothing,
    ) -> Phase:
        """Return a phase of `steps` batches, each with `samples` samples of every domain, under a cosine schedule."""
        # About a hundred steps an epoch, in which every player has a turn; the last epoch may be shorter.
        steps_per_epoch = math.ceil(steps / max(1, steps // max(100, len(turns))))
        epochs = math.ceil(steps / steps_per_epoch)
        domains, seed = self.problem.domains, self.problem.seed
        index = torch.arange(len(domains), device=domains.z.device)

        def batches(epoch: int) -> Iterator[DomainBatch]:
            for step in range(min(steps_per_epoch, steps - epoch * steps_per_epoch)):
                stream = torch_stream(seed, "samples", name, epoch, step, device=index.device)
                yield domains.draw(index, samples, stream)

        return Phase(
            name=name,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            batches=batches,
            players=players,
            turns=turns,
            schedule=schedule,
            begin=begin,
        )

    @abstractmethod
    def phases(self) -> list[Phase]:
        """Return the phases of training in order."""

    @abstractmethod
    def field(self) -> ParameterField:
        """Return θ(z) as learned so far."""


METHODS: Registry[type[Learner]] = Registry("method", "thetafield.methods")
