"""What of a field is set after training: how many charts answer, and how much of what they carry is believed."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from thetafield.data.domains import DomainSet
from thetafield.evaluation.scores import errors_of_each
from thetafield.fields.base import ParameterField
from thetafield.fields.model import FieldModel
from thetafield.fields.shrunk import ShrunkField
from thetafield.fields.transported import TransportedField

BLENDS = ((1, None), (2, None), (4, None), (8, None), (8, 0.5))
SHRINKS = (1.0, 0.75, 0.5, 0.25, 0.0)
REACHES = (None, 3.0, 1.0)
NOTHING_CARRIED = {"blend": 1, "bandwidth": None, "shrink": 0.0, "reach": None}
Dials = tuple[tuple[str, Any], ...]


def dialled_errors(model: FieldModel, held: DomainSet, fixed: Mapping[str, Any]) -> dict[Dials, np.ndarray]:
    """Return the error of each held-out domain under every setting of the dials that are not fixed."""
    settings = _settings(model.field, fixed)
    found = errors_of_each(model, held, settings, lambda dials: turn(model.field, dict(dials)))
    return dict(zip(settings, found, strict=True))


def least(errors: Mapping[Dials, np.ndarray]) -> float:
    """Return the mean error under the best dials."""
    return min(float(each.mean()) for each in errors.values())


def turn(field: ParameterField, dials: Mapping[str, Any]) -> None:
    """Set what of a field is set after training."""
    moved = field.moved if isinstance(field, ShrunkField) else field
    assert isinstance(moved, TransportedField)
    moved.blend, moved.bandwidth = dials["blend"], dials["bandwidth"]
    if isinstance(field, ShrunkField):
        field.shrink = dials["shrink"]
        field.reach = None if dials["reach"] is None else dials["reach"] * moved.spacing


def _settings(field: ParameterField, fixed: Mapping[str, Any]) -> list[Dials]:
    """Return the settings to try after training; ties go to the first: fewest charts, most of what they carry."""
    tried = ((fixed["blend"], None),) if "blend" in fixed else BLENDS
    blends: list[Dials] = list(
        dict.fromkeys((("blend", count), ("bandwidth", fixed.get("bandwidth", width))) for count, width in tried)
    )
    if not isinstance(field, ShrunkField):
        return blends
    shrinks = (fixed["shrink"],) if "shrink" in fixed else SHRINKS
    reaches = (fixed["reach"],) if "reach" in fixed else REACHES
    # Where nothing of it is added, it does not matter what was carried.
    return [
        (*blend, ("shrink", shrink), ("reach", reach))
        for blend, shrink, reach in product(blends, shrinks, reaches)
        if shrink or (blend == blends[0] and reach == reaches[0])
    ]
