"""The group laws of a learned field, over the descriptors of unseen domains."""

import math

import torch
from torch import Tensor

from thetafield.fields.model import FieldModel, Model
from thetafield.fields.shrunk import ShrunkField
from thetafield.fields.transported import TransportedField
from thetafield.geometry.laws import Laws, check_laws
from thetafield.streams import torch_stream

DECODED = 2**28  # numbers of parameters that pairs and triplets may come to: all those of 2-Moons, and more
FEWEST = 500


@torch.no_grad()
def field_laws(model: Model, z: Tensor, num_triplets: int = 20000, seed: int = 0) -> Laws | None:
    """Measure identity, associativity and invertibility at raw descriptors.

    None where there is no transport, or where it overflows between descriptors that lie too far apart. Of heads with
    tens of thousands of parameters fewer pairs and triplets are taken: hundreds tell a mean cosine to a tenth of its
    spread, and each passes the coder several times, which on a CPU would come to take longer than the training.
    """
    if not isinstance(model, FieldModel):
        return None
    field = model.field.moved if isinstance(model.field, ShrunkField) else model.field
    if not isinstance(field, TransportedField):
        return None
    scaled = model.scaler(z.to(model.device))
    most = max(FEWEST, DECODED // field.theta_dim)
    stream = torch_stream(seed, "laws")
    laws = check_laws(field.operator, field(scaled), scaled, min(num_triplets, most), stream, most_pairs=most)
    return laws if math.isfinite(laws.associativity + laws.invertibility) else None
