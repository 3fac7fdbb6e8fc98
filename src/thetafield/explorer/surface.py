"""The directions in which θ moves most over the descriptors: what the page projects θ on."""

from typing import Any

import torch

from thetafield.explorer.arrays import Arrays
from thetafield.fields.model import FieldModel
from thetafield.streams import torch_stream

SPREAD = 256  # descriptors, spread evenly over the training range
COMPONENTS = 3


@torch.no_grad()
def describe_surface(model: FieldModel, arrays: Arrays) -> dict[str, Any] | None:
    """Return the mean of θ over the training range, its first three principal directions and their shares.

    None where θ is the same everywhere.
    """
    width = len(model.recipe.descriptors)
    if not width:
        return None
    seed = int(torch.randint(2**31, (), generator=torch_stream(0, "explorer", "surface")))
    z = torch.quasirandom.SobolEngine(width, scramble=True, seed=seed).draw(SPREAD)
    theta = model.field(z.to(model.device)).cpu()
    theta = theta[torch.isfinite(theta).all(1)]
    if len(theta) < 2:
        return None
    mean = theta.mean(0)
    moved = theta - mean
    # By the products of θ with each other, which are few, whatever the number of parameters.
    energy, left = torch.linalg.eigh((moved @ moved.T).double())
    energy, left = energy.flip(0).clamp_min(0), left.flip(1)
    if energy.sum() <= 1e-12 * theta.square().sum().clamp_min(1e-30):
        return None
    directions = torch.nn.functional.normalize(left[:, :COMPONENTS].T.float() @ moved, dim=1)
    # A direction and its opposite are the same: the larger entry is made positive, so that pages can be compared.
    signs = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    return {
        "mean": arrays.add(mean),
        "directions": arrays.add(directions * signs),
        "shares": (energy[:COMPONENTS] / energy.sum()).tolist(),
    }
