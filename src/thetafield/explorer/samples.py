"""Samples of the training domains for the page: points of a plane, rows of a table, or small images.

The backbone is the same for every z, so that it runs here, once: the page gets features and runs heads on them.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.evenly import evenly
from thetafield.explorer.arrays import Arrays
from thetafield.fields.model import FieldModel, Model

MOST = 24  # images on the page
LARGEST = 64  # pixels of an image's side beyond which it is thinned out


@torch.no_grad()
def describe_samples(model: Model, domains: DomainSet, arrays: Arrays) -> dict[str, Any]:
    """Return inputs, or features and pictures, of samples, with their labels or targets and their domains."""
    counts = (domains.offsets[1:] - domains.offsets[:-1]).tolist()
    owner = np.repeat(np.arange(len(counts)), counts)
    x, y = domains.x, domains.y
    if x.ndim > 2:
        rows = evenly(len(x), MOST)
        x, y, owner = x[rows], y[rows], owner[rows]
    part = {
        "domain": owner.tolist(),
        "target": y.flatten().tolist() if y.ndim == 1 else y[:, 0].tolist(),
        "features": None if x.ndim == 2 else arrays.add(_features(model, x)),
        "points": arrays.add(x) if x.ndim == 2 and x.shape[1] == 2 else None,
    }
    return part | {"images": arrays.add(_pictures(x)) if x.ndim > 3 else None}


def _features(model: Model, x: Tensor) -> Tensor:
    """Return what the head or trees read, before any z is known, shape (n, F)."""
    values = x.to(model.device, torch.float32)
    values = values if model.inputs is None else model.inputs(values)
    return (model.predictor.features(values[None])[0] if isinstance(model, FieldModel) else values).flatten(1)


def _pictures(x: Tensor) -> np.ndarray:
    """Return images (n, channels, height, width) as bytes (n, height, width, 1 or 3) that span black to white."""
    values = x.double()
    if values.shape[1] not in (1, 3):
        values = values.mean(1, keepdim=True)
    step = -(-max(values.shape[2:]) // LARGEST)
    values = values[:, :, ::step, ::step]
    low, high = values.amin(), values.amax()
    scaled = 255 * (values - low) / (high - low).clamp_min(1e-12)
    return scaled.round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
