"""Problems to be timed on: 2-Moons itself, moons of any number of domains, heads of any width, images like MNIST's."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thetafield.data import DescriptorScaler, DomainSet
from thetafield.datasets import DATASETS
from thetafield.methods.base import METHODS, Method, Problem
from thetafield.predictors import PREDICTORS
from thetafield.streams import seeded, torch_stream

SAMPLES = 100  # of a domain of moons
DIGITS = 1000  # of a domain of images


def two_moons() -> DomainSet:
    """Return the 50 training domains of 2-Moons, seed 0, with scaled descriptors."""
    train = DATASETS["two-moons"](0).train
    return replace(train, z=DescriptorScaler.fit(train.z)(train.z))


def moons(num_domains: int, device: torch.device, samples: int = SAMPLES) -> DomainSet:
    """Return half circles, scaled and turned by the descriptor, inputs in half floats, made without a loop.

    >>> moons(3, torch.device("cpu"), samples=10)
    DomainSet(3 domains, 30 samples, x (2,), 2 classes, z: scale, rotation)
    """
    stream = torch_stream(0, "speed", "moons", num_domains, device=device)
    z = torch.rand(num_domains, 2, generator=stream, device=device)
    y = torch.randint(2, (num_domains, samples), generator=stream, device=device)
    angle = math.pi * (torch.rand(num_domains, samples, generator=stream, device=device) + y)
    radius, turn = 1 + z[:, :1], 2 * math.pi * z[:, 1:]
    # The second circle is the first one turned by half a circle and moved to the right and up.
    across, up = angle.cos() + y, angle.sin() + 0.5 * y
    x = torch.stack([turn.cos() * across - turn.sin() * up, turn.sin() * across + turn.cos() * up], -1)
    return _domains(x.mul_(radius[..., None]).half().flatten(0, 1), y.flatten(), z, ("scale", "rotation"), 2)


def images(num_domains: int, device: torch.device) -> DomainSet:
    """Return random images of MNIST's shape in bytes."""
    stream = torch_stream(0, "speed", "images", device=device)
    count = num_domains * DIGITS
    x = torch.randint(256, (count, 3, 28, 28), dtype=torch.uint8, generator=stream, device=device)
    y = torch.randint(10, (count,), generator=stream, device=device)
    z = torch.rand(num_domains, 3, generator=stream, device=device)
    return _domains(x, y, z, ("rotation", "colour", "occlusion"), 10)


def _domains(x: Tensor, y: Tensor, z: Tensor, names: tuple[str, ...], num_classes: int) -> DomainSet:
    return DomainSet(
        x=x,
        y=y,
        z=z,
        offsets=torch.arange(len(z) + 1, device=z.device) * (len(x) // len(z)),
        ids=np.arange(len(z)),
        descriptors=names,
        factors=names,
        classes=np.arange(num_classes),
    )


def learner(
    name: str,
    domains: DomainSet,
    device: torch.device,
    options: Mapping[str, Any] | None = None,
    predictor: str = "mlp",
    hidden: tuple[int, ...] = (50, 50),
) -> Method:
    """Return a method at its start on scaled domains, built as training builds it.

    Args:
        name: Registry name of the method.
        domains: The domains.
        device: Where it trains.
        options: Options of the method.
        predictor: Registry name of the predictor.
        hidden: Widths of its head's hidden layers.
    """
    with seeded(0, "start"):
        template = PREDICTORS[predictor](tuple(domains.x.shape[1:]), domains.num_outputs, hidden=hidden).to(device)
        method = METHODS[name](Problem(domains.to(device), template, "cross_entropy", 0), **(options or {}))
    assert isinstance(method, Method)
    return method.to(device)
