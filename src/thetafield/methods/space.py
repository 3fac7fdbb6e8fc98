"""Search spaces: what tuning may draw for a method's options."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, spread evenly or evenly in their logarithm.

    Args:
        low: Least value.
        high: Largest value.
        log: Whether the logarithm is uniform.

    Example:
        >>> str(Range(1e-4, 1e-2))
        '0.0001 to 0.01, log'
    """

    low: float
    high: float
    log: bool = True

    def draw(self, stream: np.random.Generator) -> float:
        """Return a value, rounded to four digits so that it can be typed again."""
        bounds = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = stream.uniform(*bounds)
        return float(f"{math.exp(value) if self.log else value:.4g}")

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', log' if self.log else ''}"


@dataclass(frozen=True)
class Choice:
    """A few values, each as likely as the others.

    Args:
        values: The values.
    """

    values: tuple[Any, ...]

    def draw(self, stream: np.random.Generator) -> Any:
        """Return one of the values."""
        return self.values[int(stream.integers(len(self.values)))]

    def __str__(self) -> str:
        return " or ".join(",".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in self.values)


Space = Mapping[str, Range | Choice]
# Around Adam's customary step size, in every method that is trained by it.
LR = Range(3e-4, 3e-3)
# Where samples are few, a pooled model fits them long before its default number of batches.
STEPS = Choice((200, 600, 2000))
# Of heads that remember single samples; small ones on much data need none.
DROPOUT = Choice((0.0, 0.2))
DECAY = Choice((0.0, 1e-4, 5e-3, 2e-2))


def draw_settings(space: Space, stream: np.random.Generator, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return one value for every option of the space that is not fixed."""
    return {name: part.draw(stream) for name, part in space.items() if name not in fixed}
