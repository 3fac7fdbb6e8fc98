"""What trials took: hours in which they ran, and what their own times add up to."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from thetafield.report.store.items import Trial


def cost(trials: Sequence[Trial]) -> str:
    """Say for how long each kind of device was at the trials, and what the times of single trials add up to.

    Trials that run side by side, each slower than alone, count once for that time, as on one device of a kind.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for result in {trial.key: trial.result for trial in trials}.values():
        if result.get("device") and result.get("finished"):
            end = datetime.fromisoformat(result["finished"]).timestamp()
            found[processor(result["device"])].append((end - seconds(result), end))
    said = []
    for device, spans in sorted(found.items(), key=lambda each: -len(each[1])):
        alone = sum(end - start for start, end in spans)
        noun, took = "trial" if len(spans) == 1 else "trials", _time(covered(spans))
        more = f" (side by side: their own times add up to {_time(alone)})" if _time(alone) != took else ""
        said.append(f"{len(spans):,} {noun} took {took} of {device}{more}")
    return f"{'; '.join(said)}." if said else ""


def processor(device: str) -> str:
    """Return a device without its number of threads.

    >>> processor("NVIDIA H200"), processor("Intel Core Processor (Haswell, no TSX), 2 threads")
    ('NVIDIA H200', 'Intel Core Processor (Haswell, no TSX)')
    """
    return device.rpartition(",")[0] if device.endswith(("thread", "threads")) else device


def seconds(result: Mapping[str, Any]) -> float:
    """Return how long a trial took: its last run, or its parts, where these were not all of one run or that is old."""
    parts = choosing(result) + result["train_seconds"] + (result["eval_seconds"] or 0.0)
    return max(float(result.get("trial_seconds") or 0.0), parts)


def choosing(result: Mapping[str, Any]) -> float:
    """Return how long options were looked for on held-out training domains: drawn settings, and a method's own choice.

    >>> choosing({"tuning": {"draws": [{"seconds": 2.0}]}, "choice": {"candidates": [{"seconds": 1.0}]}})
    3.0
    """
    tried = [
        *((result.get("tuning") or {}).get("draws") or ()),
        *((result.get("choice") or {}).get("candidates") or ()),
    ]
    return sum((each.get("seconds") or 0.0 for each in tried), start=0.0)


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return the length of what spans of time cover together.

    >>> covered([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)])
    4.0
    """
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _time(duration: float) -> str:
    if duration < 90:
        return f"{duration:.0f} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"
