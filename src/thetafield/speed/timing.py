"""Times of things that are to be compared: taken in turn, so that a busy machine is busy for all of them alike."""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

MOST_RUNS = 200  # of one thing in a turn


@dataclass(frozen=True)
class Work:
    """Something to be timed.

    Args:
        run: Does it once.
        units: How many steps, epochs or descriptors that is.
        warm: What sets it up beforehand, untimed; `run` itself where it is None.
    """

    run: Callable[[], object]
    units: int = 1
    warm: Callable[[], object] | None = None


def _silent(text: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Bench:
    """Where and how thoroughly is measured.

    Args:
        device: Where.
        quick: Whether a rough answer will do.
        turns: How often everything has its turn.
        span: Seconds that a turn of one thing should last at least.
        patience: Seconds after which no further turn begins, once there have been two.
        tell: Called with what is under way.
    """

    device: torch.device
    quick: bool = False
    turns: int = 7
    span: float = 0.5
    patience: float = 60.0
    tell: Callable[[str], None] = _silent

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.type == "cuda"

    def wait(self) -> None:
        """Let everything under way on the device come to its end."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def once(self, run: Callable[[], object], times: int = 1) -> float:
        """Return the seconds of so many runs, one after another."""
        self.wait()
        started = time.perf_counter()
        for _ in range(times):
            run()
        self.wait()
        return time.perf_counter() - started

    def time(self, works: Mapping[str, Work]) -> dict[str, float]:
        """Return the median seconds of a unit of each work.

        Everything has its turn, over and over; what is fast runs several times in a turn, so that all are measured
        over comparable spans.
        """
        for name, work in works.items():
            self.tell(f"{name}: warming up")
            (work.warm or work.run)()
        taken: dict[str, list[float]] = {name: [] for name in works}
        started = time.perf_counter()
        for turn in range(self.turns):
            if turn >= 2 and time.perf_counter() - started > self.patience:
                break
            for name, work in works.items():
                self.tell(f"{name}: turn {turn + 1} of {self.turns}")
                times = _times(self.span, taken[name])
                taken[name].append(self.once(work.run, times) / times)
        return {name: statistics.median(taken[name]) / work.units for name, work in works.items()}


def _times(span: float, taken: list[float]) -> int:
    """Return how many runs fill a span, going by those before.

    >>> _times(1.0, []), _times(1.0, [0.4, 0.3]), _times(1.0, [5.0])
    (1, 4, 1)
    """
    return min(MOST_RUNS, max(1, math.ceil(span / min(taken)))) if taken else 1
