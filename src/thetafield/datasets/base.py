"""What a dataset is: training domains, named groups of test domains, and the predictor that suits them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from thetafield.data.domains import DomainSet
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
    """

    name: str
    train: DomainSet
    test: Mapping[str, DomainSet]
    predictor: str = "mlp"
    predictor_options: Mapping[str, Any] = field(default_factory=dict)
    ordered: bool = False


DATASETS: Registry[Callable[..., Dataset]] = Registry("dataset", "thetafield.datasets")
