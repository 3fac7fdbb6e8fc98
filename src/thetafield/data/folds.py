"""Held-out training domains, in four kinds: what every selection and every comparison is judged on."""

import numpy as np

from thetafield.data.columns import SEASON, TREND
from thetafield.data.domains import DomainSet
from thetafield.errors import DataError, OptionError
from thetafield.streams import numpy_stream

Fold = tuple[np.ndarray, np.ndarray]
KINDS = ("random", "blocked", "edge", "time")


def domain_folds(domains: DomainSet, count: int, seed: int = 0, kind: str = "random") -> list[Fold]:
    """Return positions (kept, held out) of domains, once for each fold; a domain is never split.

    One fold holds out about a quarter of the domains. Several part them among each other, or look as far each:

    - "random": every domain once, drawn at random: unseen domains among seen ones.
    - "blocked": every domain once, in regions of descriptor space that are cut across the longest side again and
      again: whole regions are unseen.
    - "edge": the outermost quarter along a principal direction of the descriptors, both ways of each in turn:
      extrapolation.
    - "time": the quarter that comes next, seen from moments between the middle and the last quarter: the future of
      one ordered coordinate. One fold holds out the last quarter.

    Args:
        domains: The domains.
        count: Number of folds.
        seed: Root seed of the random kind; the others draw nothing.
        kind: What is held out.

    Example:
        >>> x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
        >>> domains = DomainSet.from_arrays(x, y, z=[[3.0], [1.0], [0.0], [2.0]])
        >>> [(kept, held)] = domain_folds(domains, 1, kind="time")
        >>> domains.z[held].tolist()
        [[3.0]]
    """
    size, z = len(domains), domains.z.double().cpu().numpy()
    if kind not in KINDS:
        raise OptionError(f"folds are one of {', '.join(KINDS)}, but got {kind!r}.")
    if kind != "random" and not z.shape[1]:
        raise DataError(f"{kind} folds need descriptors, but the domains have none: use random folds.")
    time = _time(domains) if kind == "time" else None
    if kind == "time" and time is None:
        named = ", ".join(domains.descriptors)
        raise DataError(
            f"time folds need one ordered descriptor, a number or a date, but there are {z.shape[1]} ({named}): use "
            "another kind."
        )
    if size < 2:
        raise DataError(f"Folds of held-out domains need at least 2 domains, but there are {size}.")
    if count > (most := most_folds(kind, *z.shape)):
        raise DataError(
            f"{count} {kind} folds were asked for, but {size} domains with {z.shape[1]} descriptor(s) allow {most}."
        )
    quarter = _quarter(size)
    if kind == "edge":
        return [_fold(size, order[-min(quarter, size - 1) :]) for order in _outwards(_scaled(z), count)]
    if kind == "time":
        return _forward(np.argsort(z[:, time], kind="stable"), count, quarter)
    if kind == "blocked":
        parts = _regions(_scaled(z), np.arange(size), min(4, size) if count == 1 else count)
        return [_fold(size, held) for held in parts[:count]]
    order = numpy_stream(seed, "held out").permutation(size)
    return [_fold(size, held) for held in ([order[-quarter:]] if count == 1 else np.array_split(order, count))]


def most_folds(kind: str, num_domains: int, num_descriptors: int) -> int:
    """Return how many folds of a kind there can be: a coordinate has two edges, and half of time is the past.

    >>> most_folds("random", 40, 1), most_folds("edge", 40, 1), most_folds("time", 40, 1)
    (40, 2, 11)
    """
    moments = num_domains - num_domains // 2 - _quarter(num_domains) + 1
    return {"edge": 2 * min(num_domains, num_descriptors), "time": moments}.get(kind, num_domains)


def _time(domains: DomainSet) -> int | None:
    """Return the coordinate that time folds go by: the only one, or the trend of the only date."""
    if len(domains.factors) == 1:
        return 0
    trends = [i for i, factor in enumerate(domains.factors) if factor.endswith(TREND)]
    if len(trends) != 1:
        return None
    date = domains.factors[trends[0]].removesuffix(TREND)
    return trends[0] if {*domains.factors} == {f"{date}{TREND}", f"{date}{SEASON}"} else None


def _fold(size: int, held: np.ndarray) -> Fold:
    return np.setdiff1d(np.arange(size), held), np.sort(held)


def _scaled(z: np.ndarray) -> np.ndarray:
    spread = np.ptp(z, axis=0)
    return (z - z.min(0)) / np.where(spread > 0, spread, 1)


def _quarter(size: int) -> int:
    return -(-size // 4)


def _forward(order: np.ndarray, count: int, quarter: int) -> list[Fold]:
    """Return the next quarter, with all that comes before it, as seen from moments of the second half."""
    last = len(order) - quarter
    moments = np.linspace(len(order) // 2, last, count).round().astype(int) if count > 1 else [last]
    return [(np.sort(order[:now]), np.sort(order[now : now + quarter])) for now in moments]


def _outwards(z: np.ndarray, count: int) -> list[np.ndarray]:
    """Return domains ordered along principal directions, both ways of each in turn."""
    axes = np.linalg.svd(z - z.mean(0), full_matrices=False)[2]
    # An axis has no sign of its own: its strongest coordinate grows along it, on every machine.
    ways = [way * np.sign(axis[np.abs(axis).argmax()]) * axis for axis in axes for way in (1.0, -1.0)]
    return [np.argsort(z @ way, kind="stable") for way in ways[:count]]


def _regions(z: np.ndarray, index: np.ndarray, count: int) -> list[np.ndarray]:
    """Cut domains into regions of like size, always across the longest side."""
    if count == 1:
        return [index]
    longest = int(np.ptp(z[index], axis=0).argmax())
    order = index[np.argsort(z[index, longest], kind="stable")]
    left = count // 2
    cut = round(len(order) * left / count)
    return [*_regions(z, order[:cut], left), *_regions(z, order[cut:], count - left)]
