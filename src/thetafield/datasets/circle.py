"""Circle: the toy of continuously indexed domain adaptation (CIDA): discs along a half circle, cut by it.

Inputs: two coordinates, as published and not scaled. Domain i is a disc of radius 1 around the point of the circle of
radius 5 about the origin that lies i · 180 / 29 degrees counter-clockwise from the first axis; 100 samples in each.

Target: 1 where a point lies outside the circle of radius 5, else 0.

Descriptor: `index`, the number of the domain from 0. The half circle has 30 domains, the quarter its first 15. As
published, the first 6 are for training; the group `unseen` is the rest, which CIDA adapts to by its unlabelled points,
while here nobody sees it.

Source: GitHub hehaodele/CIDA, toy-circle/data/half-circle.pkl as a numpy archive with the arrays data (3000, 2), label
and domain (3000), to be put at cida_toy/half-circle.npz under the data root. (A quarter-circle.npz holds the same
arrays: the quarter is cut out when reading.) Licence: none stated.
"""

from pathlib import Path
from typing import Literal

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.source import DataFile, Source, from_files
from thetafield.datasets.tables import damaged_file, read_npz

SOURCE = Source(
    dataset="circle",
    origin="GitHub hehaodele/CIDA (toy-circle/data/half-circle.pkl)",
    licence="none stated",
    files=(DataFile("cida_toy/half-circle.npz"),),
    note="Save the dictionary in the pickle as a numpy archive with the arrays data, label and domain.",
)
PARTS = {"half": 30, "quarter": 15}
NUM_TRAIN = 6


@DATASETS.register("circle")
@from_files(SOURCE)
def circle(seed: int, *, part: Literal["half", "quarter"] = "half") -> Dataset:
    """Read the domains along a half circle of CIDA, of which the first six are for training.

    Args:
        seed: Not used, since nothing is drawn.
        part: How far the test domains go: all 30, or 15 as far as a quarter of the circle.
    """
    (path,) = SOURCE.paths()
    stored = read_npz(path, ["data", "label", "domain"])
    points, labels, index = stored["data"], stored["label"], stored["domain"]
    _check(path, points, labels, index)
    rows = index < PARTS[part]
    whole = DomainSet.from_arrays(
        points[rows],
        labels[rows],
        domain=index[rows],
        z=index[rows],
        descriptors=["index"],
        features=["x1", "x2"],
        classification=True,
    )
    return Dataset(
        name="circle",
        train=whole.select(np.arange(NUM_TRAIN)),
        test={"unseen": whole.select(np.arange(NUM_TRAIN, len(whole)))},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
        ordered=True,
    )


def _check(path: Path, points: np.ndarray, labels: np.ndarray, index: np.ndarray) -> None:
    """Raise where the arrays are not points, labels and domains 0 to 29."""
    expected = "data (3000, 2), label (3000) of 0 and 1, domain (3000) from 0 to 29"
    rows = len(points) if points.ndim else 0
    if points.shape != (rows, 2) or labels.shape != (rows,) or index.shape != (rows,):
        raise damaged_file(path, f"the shapes are {points.shape}, {labels.shape} and {index.shape}", expected)
    if points.dtype.kind not in "fiu" or not np.isfinite(points).all():
        raise damaged_file(path, "a point is not finite", expected)
    if not np.array_equal(np.unique(labels), [0, 1]):
        raise damaged_file(path, "label is not 0 and 1", expected)
    if not np.array_equal(np.unique(index), np.arange(PARTS["half"])):
        raise damaged_file(path, "domain is not 0 to 29", expected)
