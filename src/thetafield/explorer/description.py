"""All that the page needs to know of a saved model, in JSON and arrays."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from thetafield import __version__
from thetafield.data.domains import DomainSet
from thetafield.errors import NeedError
from thetafield.explorer.arrays import Arrays, as_double
from thetafield.explorer.forest import describe_forest
from thetafield.explorer.grid import MARGIN, POINTS, describe_grid
from thetafield.explorer.inputs import describe_inputs, find_ranges, is_table
from thetafield.explorer.networks import describe_head
from thetafield.explorer.parts import Part, describe_charts, describe_field
from thetafield.explorer.samples import describe_samples
from thetafield.explorer.saved import Saved, own_domains
from thetafield.explorer.surface import describe_surface
from thetafield.fields.direct import DirectModel
from thetafield.fields.forest import Forest
from thetafield.fields.model import FieldModel, Model
from thetafield.fields.recipe import Affine
from thetafield.geometry.terrain import Terrain
from thetafield.methods.base import METHODS

LARGEST = 32_000_000  # bytes of a field's own weights beyond which a grid of θ is sent instead, where there can be one


def describe_model(
    saved: Saved, arrays: Arrays, rows: np.ndarray | None, samples: DomainSet | None, notes: list[str]
) -> dict[str, Any]:
    """Return what the page shows and computes with.

    Args:
        saved: The model, and the trial that it comes from.
        arrays: Takes the numbers.
        rows: Rows of a person's table, as inputs.
        samples: Samples of the training domains.
        notes: Sentences for the foot of the page.
    """
    model = saved.model
    recipe, own = model.recipe, _own(model, arrays)
    answering = own["head"] is not None or own["forest"] is not None
    known, said = (
        (own_domains(saved), "the training rows") if samples is None else (samples, "samples of the training domains")
    )
    inputs = None
    if answering and is_table(model):
        shown = None if known is None else as_double(known.x)
        ranges = find_ranges(model, shown, said) if rows is None else find_ranges(model, rows, "the given rows")
        inputs = describe_inputs(model, ranges, rows, arrays)
    return {
        "version": __version__,
        "method": recipe.method,
        "title": METHODS[recipe.method].title if recipe.method in METHODS.names() else recipe.method,
        "dataset": saved.dataset,
        "descriptors": list(recipe.descriptors),
        "low": as_double(model.scaler.low).tolist(),
        "high": as_double(model.scaler.high).tolist(),
        "margin": MARGIN,
        "classes": None if model.classes is None else [str(label) for label in model.classes.tolist()],
        "target": None if model.encoder is None else model.encoder.target,
        "num_outputs": recipe.num_outputs,
        "input_shape": list(recipe.input_shape),
        "inputs_affine": _affine(model.inputs, arrays),
        "outputs_affine": _affine(model.outputs, arrays),
        **own,
        "trust": _trust(model, arrays),
        "domains": None if known is None else [str(name) for name in known.ids.tolist()],
        "inputs": inputs,
        "samples": None if samples is None or not answering else describe_samples(model, samples, arrays),
        "notes": notes,
    }


def _own(model: Model, arrays: Arrays) -> dict[str, Any]:
    """Return what answers are computed with: a field and its head, or trees."""
    if isinstance(model, FieldModel):
        return {
            "head": describe_head(model.predictor),
            "field": _field(model, arrays),
            "forest": None,
            "charts": describe_charts(model.field, arrays),
            "surface": describe_surface(model, arrays),
            "relevance": {name: list(ends) for name, ends in model.relevance_ranges().items()},
        }
    if not (isinstance(model, DirectModel) and isinstance(model.answers, Forest)):
        raise NeedError(f"The page can compute fields θ(z) and trees, but {model.recipe.method} is neither.")
    forest = describe_forest(model.answers, arrays)
    return {"head": None, "field": None, "forest": forest, "charts": None, "surface": None, "relevance": {}}


def _field(model: FieldModel, arrays: Arrays) -> Part:
    """Return the field's own parts where the page can compute with them and they are small, and a grid otherwise."""
    own = Arrays()
    part = describe_field(model.field, own)
    griddable = len(model.recipe.descriptors) in POINTS
    if part is None or (own.num_bytes > LARGEST and griddable):
        return describe_grid(model, arrays)
    part = describe_field(model.field, arrays)
    assert part is not None
    return part


def _affine(affine: Affine | None, arrays: Arrays) -> Part | None:
    if affine is None:
        return None
    return {"shift": arrays.add(affine.shift.flatten()), "scale": arrays.add(affine.scale.flatten())}


def _trust(model: Model, arrays: Arrays) -> Part:
    trust, blind = model.trust, model.trust.blind
    calibration = None
    if blind is not None:
        calibration = {
            "scales": list(blind.scales),
            "weights": list(blind.weights),
            "intercept": blind.intercept,
            "terrain": None if blind.terrain is None else _terrain(blind.terrain, arrays),
            "naive": trust.naive,
            "attained": trust.attained,
        }
    anchors = trust.anchors.detach().to("cpu", torch.float32)
    return {"anchors": arrays.add(anchors), "reach": trust.reach, "calibration": calibration}


def _terrain(terrain: Terrain, arrays: Arrays) -> Part:
    content = asdict(terrain)
    return content | {name: arrays.add(np.array(content[name])) for name in ("points", "weights")}
