"""The largest groups of rows, as domains of a published collection that is larger than what is needed."""

from pathlib import Path

import numpy as np

from thetafield.errors import DataError
from thetafield.streams import numpy_stream


def largest_groups(groups: np.ndarray, count: int, cap: int, name: str, path: Path) -> np.ndarray:
    """Return the rows of the `count` largest groups, in order of the groups, at most `cap` of each.

    Rows beyond the cap are left out by a fixed draw, so that neither seed nor split decides what has to be computed.

    Args:
        groups: Group of each row, shape (M,).
        count: Number of groups.
        cap: Most rows of a group.
        name: Name of the dataset.
        path: File that the rows come from.
    """
    names, code, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < count:
        raise DataError(
            f"{name} needs {count} domains, but {path} has {len(names)}: get the published file, or lower num_train "
            "and num_test."
        )
    chosen = np.argsort(-sizes, kind="stable")[:count]
    shuffled = numpy_stream(0, name, "rows").permutation(len(groups))
    shuffled = shuffled[np.argsort(code[shuffled], kind="stable")]
    within = np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[code[shuffled]]
    rows = np.sort(shuffled[(within < cap) & np.isin(code[shuffled], chosen)])
    return rows[np.argsort(code[rows], kind="stable")]
