"""Boosted trees as the page walks through them."""

from typing import Any

import numpy as np

from thetafield.errors import NeedError
from thetafield.explorer.arrays import Arrays
from thetafield.fields.forest import Forest

MOST_NODES = 2**22  # as many as make a page of some 30 MB


def describe_forest(forest: Forest, arrays: Arrays) -> dict[str, Any]:
    """Return the nodes of all trees, the children as steps from each node, which take less room than their places."""
    of = {name: array.cpu().numpy() for name, array in forest.arrays.items()}
    own = np.arange(len(of["feature"]))
    if len(own) > MOST_NODES:
        raise NeedError(f"The page holds trees of at most {MOST_NODES:,} nodes, but these have {len(own):,}.")
    parts = {
        "feature": of["feature"],
        "threshold": _rounded_down(of["threshold"]),
        "missing_left": of["missing_left"].astype(np.uint8),
        "left": of["left"] - own,
        "right": of["right"] - own,
        "value": of["value"],
        "roots": of["roots"],
        "column": of["column"],
        "baseline": of["baseline"],
    }
    described: dict[str, Any] = {name: arrays.add(array) for name, array in parts.items()}
    return described | {
        "labels": of["labels"].tolist(),
        "num_outputs": forest.num_outputs,
        "read_descriptor": forest.read_descriptor,
    }


def _rounded_down(values: np.ndarray) -> np.ndarray:
    """Return the largest numbers of single precision that are not above: columns of that precision compare alike.

    >>> _rounded_down(np.array([0.1, 0.5])).tolist()
    [0.09999999403953552, 0.5]
    """
    wide = np.asarray(values, dtype=np.float64)
    near = wide.astype(np.float32)
    return np.where(near > wide, np.nextafter(near, np.float32(-np.inf)), near)
