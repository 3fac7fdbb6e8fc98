"""2-Moons over time: the moons only rotate, training sees the past and the test is the future."""

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.datasets.two_moons import moon_domains
from thetafield.options import Count
from thetafield.streams import numpy_stream

NOW = 35.0
END = 50.0


@DATASETS.register("two-moons-time")
def two_moons_time(seed: int, *, num_train: Count = 50, num_test: Count = 150) -> Dataset:
    """Draw moons that turn by 18° counter-clockwise about the origin per unit of one ordered coordinate, time.

    Inputs are the two coordinates of a point, the target is its moon, a domain is a moment. Training times are uniform
    in [0, 35], with one at 0 and one at 35 so that they cover the past; test times are uniform in (35, 50], as in
    temporal domain generalization (Koodos, NeurIPS 2024). Synthetic, made from the seed, no licence needed.

    Args:
        seed: Root seed of the times and the points.
        num_train: Number of training domains.
        num_test: Number of test domains.
    """
    # Training and test domains come from streams of their own: more test domains never change the training ones.
    past = numpy_stream(seed, "two-moons-time", "train").uniform(0, NOW, num_train)
    past[:2] = [0, NOW][:num_train]
    # Counted back from the end, since a uniform draw excludes the upper bound and here the lower one is excluded.
    future = END - numpy_stream(seed, "two-moons-time", "test").uniform(0, END - NOW, num_test)
    return Dataset(
        name="two-moons-time",
        train=_domains(past, numpy_stream(seed, "two-moons-time", "train", "points"), first_id=0),
        test={"future": _domains(future, numpy_stream(seed, "two-moons-time", "test", "points"), first_id=num_train)},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
        ordered=True,
    )


def _domains(times: np.ndarray, stream: np.random.Generator, first_id: int) -> DomainSet:
    """Return the moons at `times` in order, without a change of scale."""
    z = np.stack([np.zeros(len(times)), np.sort(times)], -1)
    domains = moon_domains(z, stream, first_id)
    return domains.with_descriptors(domains.z[:, 1:], ("time",))
