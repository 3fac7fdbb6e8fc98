"""2-Moons: two interleaved half circles, scaled and rotated by the descriptor (paper, appendix A.1)."""

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from thetafield.data.descriptors import add_noise, add_projections, drop_coordinates
from thetafield.data.domains import DomainSet
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.errors import DataError
from thetafield.options import Count, Natural
from thetafield.streams import numpy_stream

RANGE = 50.0
MESH = 21
POINTS = 500  # per moon


@DATASETS.register("two-moons")
def two_moons(
    seed: int,
    *,
    num_train: Count = 50,
    num_test: Count = 150,
    noise_coordinates: Natural = 0,
    redundant_coordinates: Natural = 0,
    dropped_coordinates: Natural | None = None,
) -> Dataset:
    """Draw the 2-Moons domains of the paper: z = (scale, rotation) in [0, 50]².

    A unit of scale enlarges the moons by 10 %, a unit of rotation turns them by 18° counter-clockwise about the
    origin. Training domains are uniform with the first at z = (0, 0); the test domains are `num_test` uniform ones
    and a 21 × 21 mesh. Synthetic, made from the seed, no licence needed.

    Args:
        seed: Root seed of the domains, their points and the imperfections.
        num_train: Number of training domains.
        num_test: Number of uniform test domains beside the mesh.
        noise_coordinates: Number of uninformative coordinates to append.
        redundant_coordinates: Number of random projections to append.
        dropped_coordinates: How many of eight random projections to drop; None keeps the true coordinates.
    """
    imperfect = (noise_coordinates > 0) + (redundant_coordinates > 0) + (dropped_coordinates is not None)
    if imperfect > 1:
        raise DataError("two-moons takes one imperfection at a time: noise, redundant or dropped coordinates.")
    # Training and test domains come from streams of their own: more test domains never change the training ones.
    train_z = numpy_stream(seed, "two-moons", "train").uniform(0, RANGE, (num_train, 2))
    train_z[0] = 0
    test_z = numpy_stream(seed, "two-moons", "test").uniform(0, RANGE, (num_test, 2))
    axis = np.linspace(0, RANGE, MESH)
    mesh_z = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    groups = {"train": train_z, "random": test_z, "mesh": mesh_z}
    bounds = np.cumsum([0, *map(len, groups.values())])
    whole = DomainSet.concatenate(
        [
            moon_domains(z, numpy_stream(seed, "two-moons", name, "points"), first_id)
            for (name, z), first_id in zip(groups.items(), bounds[:-1].tolist(), strict=True)
        ]
    )
    if noise_coordinates:
        whole = add_noise(whole, noise_coordinates, seed)
    if redundant_coordinates:
        whole = add_projections(whole, redundant_coordinates, seed)
    if dropped_coordinates is not None:
        whole = drop_coordinates(whole, dropped_coordinates, seed)
    train, random, mesh = (whole.select(np.arange(a, b)) for a, b in pairwise(bounds))
    return Dataset(
        name="two-moons",
        train=train,
        test={"random": random, "mesh": mesh},
        predictor="mlp",
        predictor_options={"hidden": (50, 50)},
    )


def moon_domains(z: np.ndarray, stream: np.random.Generator, first_id: int = 0) -> DomainSet:
    """Return one domain of 500 + 500 points per descriptor of shape (N, 2), made in one piece."""
    num_domains = len(z)
    angle = np.linspace(0, math.pi, POINTS)
    upper = np.stack([np.cos(angle), np.sin(angle)], -1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], -1)
    base = np.concatenate([upper, lower])
    points = base + stream.normal(scale=0.1, size=(num_domains, *base.shape))
    turn = np.deg2rad(18 * z[:, 1])
    rotation = np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], -1).reshape(-1, 2, 2)
    x = np.einsum("Nij,Nnj->Nni", rotation, points) * (1 + 0.1 * z[:, 0])[:, None, None]
    labels = np.tile(np.repeat([0, 1], POINTS), (num_domains, 1))
    return DomainSet(
        x=_tensor(x.reshape(-1, 2)),
        y=torch.from_numpy(labels.ravel()),
        z=_tensor(z),
        offsets=torch.arange(num_domains + 1) * 2 * POINTS,
        ids=first_id + np.arange(num_domains),
        descriptors=("scale", "rotation"),
        factors=("scale", "rotation"),
        classes=np.array([0, 1]),
        features=("x1", "x2"),
    )


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))
