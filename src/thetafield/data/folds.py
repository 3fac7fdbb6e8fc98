"""Held-out training domains: what every selection is judged on."""

import math

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.errors import DataError
from thetafield.streams import numpy_stream


def hold_out(domains: DomainSet, share: float, seed: int, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (kept, held out) of training domains.

    Along an order such as time the latest domains are held out, since the future is what is asked for; otherwise
    domains are drawn at random.

    Args:
        domains: The training domains.
        share: Share that is held out; one domain at least, and all but one at most.
        seed: Root seed of the draw.
        ordered: Whether the only descriptor is an order.

    Example:
        >>> x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
        >>> domains = DomainSet.from_arrays(x, y, z=[[3.0], [1.0], [0.0], [2.0]])
        >>> kept, held = hold_out(domains, 0.25, seed=0, ordered=True)
        >>> domains.z[held].tolist()
        [[3.0]]
    """
    count = len(domains)
    if count < 2:
        raise DataError(f"Holding domains out needs at least two training domains, but there are {count}.")
    held = min(count - 1, max(1, math.ceil(share * count)))
    if ordered:
        order = np.argsort(domains.z[:, 0].cpu().numpy(), kind="stable")
    else:
        order = numpy_stream(seed, "held out").permutation(count)
    return np.sort(order[:-held]), np.sort(order[-held:])
