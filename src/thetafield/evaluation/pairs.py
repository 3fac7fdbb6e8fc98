"""Whether errors differ by more than chance: intervals over domains, and differences paired domain by domain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student
from scipy.stats import wilcoxon

from thetafield.streams import numpy_stream

DRAWS = 2000
CELLS = 2**22  # numbers drawn at once
LEVEL = 95  # % of the interval
FEWEST = 6  # pairs: fewer cannot reach 5 %, whatever they are


@dataclass(frozen=True)
class Paired:
    """What became of one method against another.

    Args:
        difference: Mean difference of the errors; below zero where the first method errs less.
        spread: Standard error of that mean; None where there is one domain alone.
        low: Lower end of its interval; −∞ where there is one domain alone.
        high: Upper end of its interval, likewise.
        p: Of the signed-rank test, two-sided; None where there are too few domains.
        better: Share of the looks in which the first method errs less.
        domains: Number of pairs.
        repetitions: Number of seeds and splits behind each of them.
        looks: Number of domains, each counted under every seed and split.
    """

    difference: float
    spread: float | None
    low: float
    high: float
    p: float | None
    better: float
    domains: int
    repetitions: int = 1
    looks: int = 0

    @property
    def within_noise(self) -> bool:
        """Whether the interval holds zero."""
        return self.low <= 0.0 <= self.high

    @classmethod
    def of(cls, parts: Sequence[np.ndarray], repetitions: int = 1) -> "Paired":
        """Summarise differences of errors, one for each domain, in groups that are drawn from apart.

        Wilcoxon's signed-rank test (zeros as Pratt ranks them), and a percentile bootstrap over domains for the mean.

        >>> found = Paired.of([np.array([-1.0, -2.0, -3.0, -2.0, -1.5, -2.5, -2.0])])
        >>> found.difference, found.within_noise, found.better
        (-2.0, False, 1.0)
        """
        largest = max(float(np.abs(part).max(initial=0.0)) for part in parts) or 1.0
        # So that equal differences are equal to the test too, whatever their unit.
        parts = [np.round(part, 9 - math.floor(math.log10(largest))) for part in parts]
        pairs = np.concatenate(parts)
        low, high = mean_interval(parts)
        p = None
        if len(pairs) >= FEWEST:
            p = float(wilcoxon(pairs, zero_method="pratt").pvalue) if pairs.any() else 1.0
        return cls(
            difference=float(pairs.mean()),
            spread=float(pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else None,
            low=low,
            high=high,
            p=p,
            better=float((pairs < 0).mean()),
            domains=len(pairs),
            repetitions=repetitions,
            looks=len(pairs),
        )


def mean_interval(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the ends of the bootstrap interval of a mean over domains; each group is drawn from by itself.

    Draws never leave the range of what was seen, which of few domains is too narrow, so that of these it is Student's
    interval; one domain alone tells nothing of the others.

    >>> low, high = mean_interval([np.array([1.0, 2.0, 3.0])])
    >>> round(low, 2), round(high, 2), mean_interval([np.array([1.0])])
    (-0.48, 4.48, (-inf, inf))
    """
    pairs = np.concatenate(parts)
    count = len(pairs)
    if count < 2:
        return -np.inf, np.inf
    if count < FEWEST:
        reach = student.ppf((100 + LEVEL) / 200, count - 1) * pairs.std(ddof=1) / np.sqrt(count)
        return float(pairs.mean() - reach), float(pairs.mean() + reach)
    stream = numpy_stream(0, "report", "pairs")
    total = sum(_drawn_sums(part, stream) for part in parts)
    outside = _outside(count)
    low, high = np.percentile(total / count, [outside, 100 - outside])
    return float(low), float(high)


def _outside(count: int) -> float:
    """Return the % of the draws that lie beyond each end of an interval.

    Draws of few domains lie too close together, by what Student and n / (n − 1) say (Hesterberg, *What Teachers Should
    Know About the Bootstrap*, 2015).

    >>> round(_outside(6), 3), round(_outside(1000), 2)
    (0.243, 2.48)
    """
    reach = np.sqrt(count / (count - 1)) * student.ppf((100 + LEVEL) / 200, count - 1)
    return 100 * float(normal.cdf(-reach))


def _drawn_sums(part: np.ndarray, stream: np.random.Generator) -> np.ndarray:
    """Return the sums of all draws, as many at once as memory should hold."""
    at_once = max(1, CELLS // len(part))
    rows = [min(at_once, DRAWS - done) for done in range(0, DRAWS, at_once)]
    return np.concatenate([part[stream.integers(len(part), size=(count, len(part)))].sum(1) for count in rows])
