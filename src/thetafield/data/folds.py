"""Held-out training domains: what every selection is judged on."""

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.streams import numpy_stream

Fold = tuple[np.ndarray, np.ndarray]


def domain_folds(domains: DomainSet, count: int, seed: int, ordered: bool) -> list[Fold]:
    """Return positions (kept, held out) of training domains, once for each fold.

    One fold holds out a quarter of the domains, drawn at random; several hold out every domain once. Along an order
    such as time the future is what is asked for: one fold holds out the latest quarter; several hold out the blocks of
    the latest half, one after another, and keep only what comes before.

    Args:
        domains: The training domains.
        count: Number of folds.
        seed: Root seed of the draw.
        ordered: Whether the only descriptor is an order.

    Example:
        >>> x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
        >>> domains = DomainSet.from_arrays(x, y, z=[[3.0], [1.0], [0.0], [2.0]])
        >>> [(kept, held)] = domain_folds(domains, 1, seed=0, ordered=True)
        >>> domains.z[held].tolist()
        [[3.0]]
    """
    size = len(domains)
    least = 2 * count if ordered and count > 1 else max(2, count)
    if size < least:
        raise DataError(f"{count} fold(s) of held-out domains need at least {least} training domains, but got {size}.")
    if ordered:
        order = np.argsort(domains.z[:, 0].cpu().numpy(), kind="stable")
    else:
        order = numpy_stream(seed, "held out").permutation(size)
    if count == 1:
        held = -(-size // 4)
        return [_fold(order[:-held], order[-held:])]
    if ordered:
        blocks = np.array_split(order[size // 2 :], count)
        starts = size // 2 + np.cumsum([0, *map(len, blocks)])
        return [_fold(order[:start], block) for start, block in zip(starts, blocks, strict=False)]
    blocks = np.array_split(order, count)
    return [_fold(np.concatenate([*blocks[:k], *blocks[k + 1 :]]), blocks[k]) for k in range(count)]


def _fold(kept: np.ndarray, held: np.ndarray) -> Fold:
    return np.sort(kept), np.sort(held)
