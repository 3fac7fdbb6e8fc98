"""How long a method trains, as its pilot told."""

from collections.abc import Sequence
from dataclasses import dataclass

PILOT = (1 / 60, 1 / 20)  # shares of a method's length that its pilot trains for
START = 0.3  # least share of what comes before the epochs
START_ALONE = 0.1  # about what that is of a whole training


@dataclass(frozen=True)
class Pace:
    """Seconds of one training and its scores: fixed + whole · (share of its length).

    Args:
        fixed: What it takes however short it is.
        whole: What its whole length adds.
        alone: Seconds of what it starts from alone, at the least share of that; 0 where that is not known.
    """

    fixed: float
    whole: float
    alone: float = 0.0

    @classmethod
    def of(cls, seconds: Sequence[float], alone: float = 0.0) -> "Pace":
        """Read it off a pilot's two trainings.

        >>> Pace.of([1.0, 2.0])
        Pace(fixed=0.5, whole=30.0, alone=0.0)
        """
        short, long = seconds
        # A pilot may be slowed down by anything: of its longer part, a tenth at least is taken for proportional.
        whole = max((long - short) / (PILOT[1] - PILOT[0]), 0.1 * long / PILOT[1])
        return cls(round(max(0.0, long - PILOT[1] * whole), 9), round(whole, 9), alone)

    @classmethod
    def within(cls, seconds: float) -> "Pace":
        """Return that of a pilot that takes so long and is proportional to its length."""
        return cls.of([seconds * part / sum(PILOT) for part in PILOT], seconds)

    def seconds(self, share: float) -> float:
        """Return about how long a training of this share takes."""
        return self.fixed + self.whole * share

    def start(self, share: float) -> float:
        """Return about how long what it starts from takes alone."""
        return (self.alone or self.seconds(START_ALONE * START)) * max(1.0, share / START)
