"""Some of many, evenly spaced, where all would be more than enough."""

import numpy as np


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most so many of the positions 0 … count − 1, the first and the last among them.

    >>> evenly(3, 10).tolist(), evenly(9, 3).tolist()
    ([0, 1, 2], [0, 4, 8])
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
