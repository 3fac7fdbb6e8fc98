"""What a method is: modules, phases of losses, and the field that comes out. It owns no optimiser and no test data."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch, DomainSet
from thetafield.data.shard import Shard
from thetafield.errors import NeedError
from thetafield.fields.base import ParameterField
from thetafield.fields.direct import Answers
from thetafield.files import plain
from thetafield.geometry.atlas import gather_rows
from thetafield.kernels import kernel
from thetafield.methods.phase import Phase, Player, Schedule, nothing
from thetafield.methods.space import Space
from thetafield.options import checked
from thetafield.predictors.base import Predictor
from thetafield.ranks import ALONE, Ranks
from thetafield.registry import Registry
from thetafield.typing import Indices, Outputs, Risks, Thetas

Loss = Literal["cross_entropy", "absolute_error", "squared_error"]
AT_ONCE = 8192  # samples that pass a frozen backbone together
MOST_FEATURES = 2**28  # numbers that are kept of what it makes of all samples


def _cross_entropies(outputs: Outputs, y: Tensor) -> Tensor:
    """Return the loss of every sample, shape (b, n)."""
    if outputs.is_cuda:
        return nn.functional.cross_entropy(outputs.flatten(0, 1), y.flatten(), reduction="none").view_as(y)
    # Samples last, as perceptrons leave them: three times as fast on a CPU, where classes are few and samples many.
    return nn.functional.cross_entropy(outputs.mT, y, reduction="none")


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

    @property
    def ranks(self) -> Ranks:
        """Who trains on these domains."""
        return self.domains.ranks if isinstance(self.domains, Shard) else ALONE

    @torch.no_grad()
    def beyond(self, passes: int) -> "Problem":
        """Let a backbone that does not change from here on be passed once by every sample.

        Args:
            passes: Samples that would pass through the backbone otherwise.

        Returns:
            The problem with features for inputs; the problem itself where that saves nothing or needs too much memory,
            or where the same sample does not always give the same features.
        """
        domains, predictor = self.domains, self.predictor
        rows = len(domains.x)
        if not predictor.steady or rows > passes or domains.on_disk or self.ranks.several:
            return self
        first = predictor.features(domains.x[None, :1])[0]
        if first.numel() * rows > MOST_FEATURES:
            return self
        features = torch.cat([predictor.features(part[None])[0] for part in domains.x.split(AT_ONCE)])
        return replace(self, domains=replace(domains, x=features), predictor=predictor.beyond())

    def risks(self, outputs: Outputs, batch: DomainBatch) -> Risks:
        """Return R_e, the weighted mean loss of each domain in the batch."""
        if self.loss == "cross_entropy":
            each = _cross_entropies(outputs, batch.y)
        else:
            difference = outputs - batch.y
            each = (difference.abs() if self.loss == "absolute_error" else difference.square()).mean(-1)
        return (each * batch.weight).sum(1)

    def head_risks(self, theta: Thetas, features: Float[Tensor, "s n *f"], batch: DomainBatch, where: Indices) -> Risks:
        """Return the risk of each head on one of the batch's s domains: that at its position in `where`.

        Small heads on a GPU run in one kernel, which reads the samples where they lie.

        Args:
            theta: Parameters of b heads.
            features: What the backbone made of the batch's inputs.
            batch: Samples of s domains.
            where: Position of each head's domain in the batch; several heads may share one.
        """
        fused = kernel("thetafield.predictors.perceptron_kernel") if theta.is_cuda else None
        if fused is not None and fused.serves(self.predictor, theta, features):
            widths = self.predictor.widths
            return fused.risks(theta, features, batch.y, batch.weight, where, widths, self.loss)
        picked = DomainBatch(gather_rows(features, where), batch.y[where], batch.weight[where], batch.index[where])
        return self.risks(self.predictor.head(theta, picked.x), picked)


@dataclass(frozen=True)
class Needs:
    """What a method needs of the data; where a need is not met a table says N/A."""

    descriptor: bool = False
    ordered: bool = False
    classification: bool = False
    min_domains: int = 1

    @property
    def reads(self) -> bool:
        """Whether it reads descriptors."""
        return self.descriptor or self.ordered


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
    # What the data decide, option by option, beside the defaults: tried on held-out training domains.
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    # Of what training starts from, the same: tried first and without the rest of the training, which costs little.
    foundations: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    alone: ClassVar[Mapping[str, Any]] = {}  # options under which nothing but that is trained
    choices_of_few: ClassVar[tuple[str, ...]] = ()  # of both, what few training domains can tell
    # Whether ranks can take parts of a step: its loss is a mean over domains or a sum over anchors, in which none
    # depends on the others.
    divisible: ClassVar[bool] = False
    # Raised where the same options and the same seed come to give another result: stored trials of before do not count.
    revision: ClassVar[int] = 0

    @abstractmethod
    def __init__(self, problem: Problem) -> None: ...

    @classmethod
    def has_start(cls, options: Mapping[str, Any]) -> bool:
        """Return whether training under these options starts from something that has a training of its own."""
        return bool(cls.foundations)

    @classmethod
    def check_ranks(cls, ranks: Ranks) -> None:
        """Raise a sentence where there are more ranks than the method can use."""
        if ranks.several and not cls.divisible:
            raise NeedError(
                f"{cls.title} looks at all domains together and trains on one rank, but torchrun started "
                f"{ranks.count}: start it without torchrun."
            )

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
        begin: Callable[[], None] = nothing,
    ) -> Phase:
        """Return a phase of `steps` batches, each with `samples` samples of every domain, under a cosine schedule."""
        domains = self.problem.domains
        index = torch.arange(len(domains), device=domains.z.device)
        draw, share = (lambda step: domains.draw(index, samples)), 1.0
        if isinstance(domains, Shard):
            own = domains.ranks.part(len(domains))
            draw, share = (lambda step: domains.draw_own(samples)), (own.stop - own.start) / len(domains)
        return Phase(
            name=name,
            steps=steps,
            # About a hundred steps an epoch, in which every player has a turn.
            steps_per_epoch=math.ceil(steps / max(1, steps // max(100, len(turns)))),
            draw=draw,
            players=players,
            seed=self.problem.seed,
            device=domains.z.device,
            turns=turns,
            schedule=schedule,
            begin=begin,
            captured=not domains.on_disk,
            share=share,
        )

    @abstractmethod
    def phases(self) -> list[Phase]:
        """Return the phases of training in order."""

    @abstractmethod
    def field(self) -> ParameterField:
        """Return θ(z) as learned so far."""


METHODS: Registry[type[Learner]] = Registry("method", "thetafield.methods")


def as_today(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the same options come to may depend on: the defaults of the others, and the method's revision."""
    return {"defaults": plain(checked(METHODS[method], options, method)), "revision": METHODS[method].revision}
