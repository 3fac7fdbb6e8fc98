"""θ on a grid over the descriptors, for fields that the page does not compute itself."""

import math
from typing import Any

import torch
from torch import Tensor

from thetafield.errors import NeedError
from thetafield.explorer.arrays import Arrays
from thetafield.fields.doubt import trust_at
from thetafield.fields.model import FieldModel
from thetafield.streams import torch_stream

MARGIN = 0.1  # how far the page goes beyond the training range, as a share of it
POINTS = {1: 257, 2: 41, 3: 15}  # grid points along each descriptor, by their number
RANK = 128  # directions of θ that are kept at most
LOST = 1e-10  # share of the variance of θ that may fall away with the others
PROBES = 256  # descriptors at which the error is measured


@torch.no_grad()
def describe_grid(model: FieldModel, arrays: Arrays) -> dict[str, Any]:
    """Return θ on a grid in its principal directions, and how far the interpolation misses θ elsewhere.

    Raises:
        NeedError: There are too many descriptors for a grid.
    """
    width = len(model.recipe.descriptors)
    if width not in POINTS:
        raise NeedError(
            f"The page can neither compute θ(z) of a {model.field.kind} field itself nor hold it on a grid over "
            f"{width} descriptors: three are the most."
        )
    axis = torch.linspace(-MARGIN, 1 + MARGIN, POINTS[width])
    nodes = torch.cartesian_prod(*([axis] * width)).reshape(-1, width)
    theta = model.field(nodes.to(model.device)).cpu().double()
    mean = theta.mean(0)
    left, strengths, directions = torch.linalg.svd(theta - mean, full_matrices=False)
    energy = strengths.square()
    kept = int((energy.flip(0).cumsum(0).flip(0) > LOST * energy.sum()).sum())
    kept = max(1, min(kept, RANK, len(strengths)))
    coordinates = left[:, :kept] * strengths[:kept]
    trust = None if model.trust.blind is None else arrays.add(trust_at(model, _raw(model, nodes)))
    return {
        "kind": "grid",
        "theta_dim": model.field.theta_dim,
        "low": -MARGIN,
        "high": 1 + MARGIN,
        "points": POINTS[width],
        "mean": arrays.add(mean),
        "coordinates": arrays.add(coordinates),
        "directions": arrays.add(directions[:kept]),
        "trust": trust,
        "error": _error(model, mean, coordinates, directions[:kept], POINTS[width]),
    }


def _error(model: FieldModel, mean: Tensor, coordinates: Tensor, directions: Tensor, points: int) -> dict[str, float]:
    """Return median and 95th percentile of ‖θ̂ − θ‖ / ‖θ − mean θ‖ at random descriptors of the training range."""
    width = len(model.recipe.descriptors)
    z = torch.rand(PROBES, width, generator=torch_stream(0, "explorer", "grid"))
    place = ((z + MARGIN) / (1 + 2 * MARGIN) * (points - 1)).clamp(0, points - 1)
    cell = place.floor().clamp(max=points - 2).long()
    share = (place - cell).double()
    found = torch.zeros(PROBES, coordinates.shape[1], dtype=torch.double)
    for corner in range(2**width):
        weight, index = torch.ones(PROBES, dtype=torch.double), torch.zeros(PROBES, dtype=torch.long)
        for k in range(width):
            up = corner >> k & 1
            weight = weight * (share[:, k] if up else 1 - share[:, k])
            index = index * points + cell[:, k] + up
        found += weight[:, None] * coordinates[index]
    theta = model.field(z.to(model.device)).cpu().double()
    scale = (theta - mean).norm(dim=1).clamp_min(1e-12)
    error = (mean + found @ directions - theta).norm(dim=1) / scale
    high = float(error.quantile(0.95))
    return {"median": float(error.median()), "high": high if math.isfinite(high) else 1e9}


def _raw(model: FieldModel, scaled: Tensor) -> Tensor:
    low, high = model.scaler.low.cpu(), model.scaler.high.cpu()
    return low + scaled * torch.where(high > low, high - low, torch.ones_like(low))
