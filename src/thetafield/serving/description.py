"""What a client may know of a model before it asks: its inputs, its outputs, and what they are called."""

from typing import Any

import numpy as np

from thetafield.data.columns import NumberColumn
from thetafield.fields.model import Model
from thetafield.serving.answering import datatype_of


def describe(model: Model, name: str, outputs: tuple[str, ...]) -> dict[str, Any]:
    """Return the protocol's metadata of a model; -1 stands for any number of rows."""
    recipe, encoder = model.recipe, model.encoder
    classes = [] if model.classes is None else model.classes.tolist()
    if encoder is None:
        inputs = [_tensor("x", "FP64", [-1, *recipe.input_shape])]
        if recipe.descriptors:
            inputs.append(_tensor("z", "FP64", [-1, len(recipe.descriptors)]))
    else:
        columns = {column.name: column for column in (*encoder.features, *encoder.descriptors)}
        inputs = [_tensor(c.name, "FP64" if isinstance(c, NumberColumn) else "BYTES", [-1]) for c in columns.values()]
    width = [] if model.squeezed else [recipe.num_outputs]
    described = {
        "prediction": ("FP64", [-1, *width]) if model.classes is None else (datatype_of(model.classes.dtype), [-1]),
        "probability": ("FP64", [-1, len(classes)]),
        "set": ("BOOL", [-1, len(classes)]),
        "interval": ("FP64", [-1, *width, 2]),
        "trust": ("FP64", [-1]),
    }
    return {
        "name": name,
        "platform": "thetafield",
        "inputs": inputs,
        "outputs": [_tensor(output, *described[output]) for output in outputs],
        "parameters": {
            "method": recipe.method,
            "descriptors": list(recipe.descriptors),
            "lowest": _plain(model.scaler.low.numpy()),
            "highest": _plain(model.scaler.high.numpy()),
            "features": list(recipe.features or ()),
            "classes": classes,
            "calibrated_trust": model.trust.blind is not None,
        },
    }


def _tensor(name: str, datatype: str, shape: list[int]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape}


def _plain(values: np.ndarray) -> list[float]:
    return values.astype(float).reshape(-1).tolist()
