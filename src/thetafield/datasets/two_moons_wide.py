"""2-Moons under heads of any size: for what grows with their number of parameters."""

import math
from dataclasses import replace

from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.two_moons import two_moons
from thetafield.options import Count


@DATASETS.register("two-moons-wide")
def two_moons_wide(seed: int, *, parameters: Count = 2802, num_train: Count = 50, num_test: Count = 10) -> Dataset:
    """Draw the domains of 2-Moons, whose predictor has two hidden layers as wide as its number of parameters takes.

    Of width w it has w² + 6 w + 2; the default is the predictor of the paper. Synthetic, no licence needed.

    Args:
        seed: Root seed of the domains and their points.
        parameters: Number of parameters D of a head, about.
        num_train: Number of training domains.
        num_test: Number of uniform test domains beside the mesh.
    """
    width = max(1, round(math.sqrt(parameters + 7) - 3))
    data = two_moons(seed, num_train=num_train, num_test=num_test)
    return replace(data, name="two-moons-wide", predictor_options={"hidden": (width, width)})
