"""Held-out training domains, in four kinds: what every selection and every comparison is judged on."""

import numpy as np
from torch import Tensor

from thetafield.data.columns import SEASON, TREND
from thetafield.data.domains import DomainSet
from thetafield.errors import DataError, OptionError
from thetafield.streams import numpy_stream

Fold = tuple[np.ndarray, np.ndarray]
KINDS = ("random", "blocked", "edge", "time")
REVISIONS = {
    "blocked": 2,
    "edge": 2,
    "time": 2,
}  # of kinds that once held out other domains: part of what results are stored by
FLAT = 1e-6  # share of the longest direction below which domains do not differ along another


def domain_folds(domains: DomainSet, count: int, seed: int = 0, kind: str = "random") -> list[Fold]:
    """Return positions (kept, held out) of domains, once for each fold; a domain is never split.

    One fold holds out about a quarter of the domains. Of several:

    - "random" ones hold out every domain once, drawn at random: unseen domains among seen ones.
    - "blocked" ones, four at most, hold out quarters of descriptor space, which is cut across its longest side and
      then again: whole regions are unseen.
    - "edge" ones hold out the outermost quarter along a principal direction of the descriptors, both ways of each in
      turn: extrapolation. A domain in a corner is held out by two of them.
    - "time" ones, two at most, hold out the last two quarters, each judged by what came before it: the future of one
      ordered coordinate.

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
    if count > (most := most_folds(domains.z, kind)):
        raise DataError(f"{count} {kind} folds were asked for, but these {size} domains allow {most}.")
    quarter = -(-size // 4)
    if kind == "edge":
        return [_fold(size, order[-quarter:]) for order in _outwards(_scaled(z), count)]
    if kind == "time":
        return _forward(np.argsort(z[:, time], kind="stable"), count, quarter)
    if kind == "blocked":
        parts = _regions(_scaled(z), np.arange(size), min(4, size))
        return [_fold(size, held) for held in [*parts[::2], *parts[1::2]][:count]]  # one of each half first
    order = numpy_stream(seed, "held out").permutation(size)
    return [_fold(size, held) for held in ([order[-quarter:]] if count == 1 else np.array_split(order, count))]


def most_folds(z: Tensor, kind: str) -> int:
    """Return how many folds of a kind domains allow: a direction has two edges, and half of time is the past.

    >>> line = Tensor(range(40))[:, None]
    >>> [most_folds(line, kind) for kind in KINDS]
    [40, 4, 2, 2]
    """
    if kind == "edge":
        return 2 * len(_axes(_scaled(z.double().cpu().numpy())))
    return {"time": min(2, len(z) // 2), "blocked": min(4, len(z))}.get(kind, len(z))


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


def _forward(order: np.ndarray, count: int, quarter: int) -> list[Fold]:
    """Return blocks of the latest domains, each with all that comes before it."""
    latest = len(order) - quarter if count == 1 else len(order) // 2
    blocks = np.array_split(order[latest:], count)
    starts = latest + np.cumsum([0, *map(len, blocks[:-1])])
    return [(np.sort(order[:start]), np.sort(block)) for start, block in zip(starts, blocks, strict=True)]


def _axes(z: np.ndarray) -> np.ndarray:
    """Return the principal directions along which domains differ, the longest first, shape (a, d)."""
    _, sizes, axes = np.linalg.svd(z - z.mean(0), full_matrices=False)
    return axes[sizes > FLAT * max(sizes.max(initial=0.0), 1e-300)]


def _outwards(z: np.ndarray, count: int) -> list[np.ndarray]:
    """Return domains ordered along principal directions, both ways of each in turn."""
    # An axis has no sign of its own: its strongest coordinate, the first of several, grows along it.
    axes = [axis * np.sign(axis[np.abs(axis).round(6).argmax()]) for axis in _axes(z)]
    ways = [way * axis for axis in axes for way in (1.0, -1.0)]
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
