"""The group laws of a learned field, over the descriptors of unseen domains."""

import math

import torch
from torch import Tensor

from thetafield.fields.model import FieldModel, Model
from thetafield.fields.shrunk import ShrunkField
from thetafield.fields.transported import TransportedField
from thetafield.geometry.laws import Laws, check_laws
from thetafield.streams import torch_stream

DECODED = 2**32  # numbers of parameters that triplets may come to
FEWEST_TRIPLETS = 500


@torch.no_grad()
def field_laws(model: Model, z: Tensor, num_triplets: int = 20000, seed: int = 0) -> Laws | None:
    """Measure identity, associativity and invertibility at raw descriptors.

    None where there is no transport, or where it overflows between descriptors that lie too far apart. Of heads with
    hundreds of thousands of parameters fewer triplets are drawn, so that this takes no longer than training.
    """
    if not isinstance(model, FieldModel):
        return None
    field = model.field.moved if isinstance(model.field, ShrunkField) else model.field
    if not isinstance(field, TransportedField):
        return None
    scaled = model.scaler(z.to(model.device))
    drawn = min(num_triplets, max(FEWEST_TRIPLETS, DECODED // field.theta_dim))
    laws = check_laws(field.operator, field(scaled), scaled, drawn, torch_stream(seed, "laws"))
    return laws if math.isfinite(laws.associativity + laws.invertibility) else None
