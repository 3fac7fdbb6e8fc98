"""What a dataset is: training domains, named groups of test domains, and the predictor that suits them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from thetafield.data.domains import DomainSet
from thetafield.options import checked
from thetafield.registry import Registry


@dataclass(frozen=True)
class Dataset:
    """Training and test domains of one task.

    Args:
        name: Registry name.
        train: The training domains: all that a method ever sees.
        test: Groups of test domains by name; scores pool them all.
        predictor: Registry name of the predictor that suits the inputs.
        predictor_options: Its options.
        ordered: Whether the only descriptor coordinate is an order such as time.
        skill: Whether the efficiencies of hydrology are reported beside the mean absolute error.
        standardise: Whether inputs are still raw columns, to be standardised by the training rows.
        holdout: The kind of folds that the test domains are, where they are one.
    """

    name: str
    train: DomainSet
    test: Mapping[str, DomainSet]
    predictor: str = "mlp"
    predictor_options: Mapping[str, Any] = field(default_factory=dict)
    ordered: bool = False
    skill: bool = False
    standardise: bool = False
    holdout: str | None = None

    @property
    def folds(self) -> str:
        """Which training domains are held out for selection: like the test domains, as far as that is known."""
        return self.holdout or ("time" if self.ordered else "random")


@runtime_checkable
class Task(Protocol):
    """Something that can be trained on: a registered dataset under options, or a person's own table."""

    @property
    def name(self) -> str:
        """How results call it."""

    @property
    def options(self) -> dict[str, Any]:
        """All that determines the domains besides the seed, in plain values."""

    def build(self, seed: int) -> Dataset:
        """Return its domains."""


@dataclass(frozen=True)
class Registered:
    """A registered dataset under options.

    Args:
        name: Registry name.
        given: Options that differ from the defaults.
    """

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """All options, checked."""
        return checked(DATASETS[self.name], self.given, self.name)

    def build(self, seed: int) -> Dataset:
        """Return the domains of a seed."""
        return DATASETS[self.name](seed, **self.options)


DATASETS: Registry[Callable[..., Dataset]] = Registry("dataset", "thetafield.datasets")
