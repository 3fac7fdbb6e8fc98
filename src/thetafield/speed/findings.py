"""What a measurement leaves behind: figures with references, curves with exponents, and what was left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Number = int | float


@dataclass(frozen=True)
class Figure:
    """One cost and what it is compared with.

    Everything measured is a cost (seconds, bytes, weights), so that one rule serves all: the ratio is
    reference / value, how many times less ours is, and more than one is better.

    Args:
        name: What was measured.
        value: Ours.
        unit: "s", "B" or "weights".
        reference: The same cost of what it is compared with, or None where it stands alone.
        against: What that is.
        reference_measured: Whether the reference was measured in the same run; otherwise it is a stated constant.
        detail: Further numbers for the record.

    Example:
        >>> Figure("a step", value=0.5, unit="s", reference=2.0, against="a loop").ratio
        4.0
    """

    name: str
    value: Number
    unit: str
    reference: Number | None = None
    against: str | None = None
    reference_measured: bool = True
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times less than the reference."""
        return None if self.reference is None else self.reference / self.value

    def record(self) -> dict[str, Any]:
        """Return it in plain JSON values."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "reference": self.reference,
            "ratio": self.ratio,
            "against": self.against,
            "reference_measured": None if self.reference is None else self.reference_measured,
            **self.detail,
        }


@dataclass(frozen=True)
class PowerLaw:
    """cost ≈ factor · size^exponent.

    Args:
        exponent: The slope in logarithms.
        factor: The cost at size one.
        start: Least size among those it was fitted to.
    """

    exponent: float
    factor: float
    start: Number

    @classmethod
    def fit(cls, sizes: Sequence[Number], costs: Sequence[Number], start: Number = 0) -> "PowerLaw":
        """Fit a line to the logarithms of the points with a size of at least `start`, by least squares.

        >>> law = PowerLaw.fit([1, 10, 100], [7.0, 20.0, 2000.0], start=10)
        >>> round(law.exponent, 6), round(law.factor, 6), law.start
        (2.0, 0.2, 10)
        """
        kept = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size >= start]
        size, cost = np.log(np.array(kept, dtype=float)).T
        slope, offset = np.polyfit(size, cost, 1)
        return cls(float(slope), float(np.exp(offset)), min(point[0] for point in kept))


@dataclass(frozen=True)
class Curve:
    """A cost over growing sizes.

    Args:
        name: What grows: "domains" or "parameters".
        cost: Which number of a point the law describes.
        points: Numbers of each size, the size itself under `name`.
        law: The fitted power law.
        detail: Further numbers for the record.
    """

    name: str
    cost: str
    points: Sequence[Mapping[str, Any]]
    law: PowerLaw
    detail: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return it in plain JSON values."""
        return {
            "points": [dict(point) for point in self.points],
            "exponent": self.law.exponent,
            "factor": self.law.factor,
            "fitted_from": self.law.start,
            "cost": self.cost,
            **self.detail,
        }


@dataclass(frozen=True)
class Skipped:
    """What was not measured, and why."""

    name: str
    why: str


Finding = Figure | Curve | Skipped
