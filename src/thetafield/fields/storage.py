"""A saved field: a folder with safetensors and JSON, checked on loading, never a pickle."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from thetafield import __version__
from thetafield.data.descriptors import DescriptorScaler
from thetafield.data.encoder import TableEncoder
from thetafield.errors import FormatError, NeedError, OptionError
from thetafield.fields import (  # noqa: F401  (a stored kind is found by name)
    constant,
    film,
    flow,
    hypernet,
    interpolated,
    modulated,
    sequence,
    shrunk,
    table,
    transported,
)
from thetafield.fields.base import FIELDS
from thetafield.fields.conformal import Conformal
from thetafield.fields.direct import DirectModel
from thetafield.fields.forest import Forest
from thetafield.fields.model import FieldModel, Model
from thetafield.fields.recipe import Affine, Recipe
from thetafield.files import plain, write_folder
from thetafield.geometry.terrain import Terrain
from thetafield.geometry.trust import Calibration, Trust
from thetafield.predictors.base import PREDICTORS
from thetafield.predictors.lift import lifted

FORMAT = 4
DESCRIPTION, TENSORS = "field.json", "field.safetensors"


def save_model(model: Model, path: Path) -> None:
    """Write `model` into the folder `path`, whole or not at all; an older field there is replaced.

    Raises:
        FormatError: The path holds something else than a saved field, which is never replaced.
    """
    path = Path(path)
    empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not empty and not (path / DESCRIPTION).is_file():
        raise FormatError(f"{path} exists and is not a saved field, so it is not replaced: choose another folder.")
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in _tensors(model).items()})
    description = {
        "format": FORMAT,
        "thetafield": __version__,
        "recipe": asdict(model.recipe),
        "field": _named(model),
        "classes": _labels_to_json(model.classes),
        "trust": {name: value for name, value in asdict(model.trust).items() if name != "anchors"},
        "encoder": None if model.encoder is None else model.encoder.to_json(),
        "standardised": {"inputs": model.inputs is not None, "outputs": model.outputs is not None},
    }
    description = plain(description)  # tuples become lists now, so that the checksum is stable
    description["checksum"] = _checksum(description, content)

    def fill(folder: Path) -> None:
        (folder / DESCRIPTION).write_text(json.dumps(description, indent=2, sort_keys=True) + "\n")
        (folder / TENSORS).write_bytes(content)

    write_folder(path, fill)


def load_model(path: Path) -> FieldModel:
    """Read a folder written by :func:`save_model` that holds parameters θ(z).

    Raises:
        FormatError: The folder is missing a file, damaged, altered, or of a newer format.
        NeedError: The model in it has none.
    """
    model = read_model(path)
    if not isinstance(model, FieldModel):
        raise NeedError(f"{model.recipe.method} has no parameters θ(z): it answers for (x, z) as such; use load_field.")
    return model


def read_model(path: Path) -> Model:
    """Read a folder written by :func:`save_model`, whether there is a θ(z) in it or not.

    Raises:
        FormatError: The folder is missing a file, damaged, altered, or of a newer format.
    """
    path = Path(path)
    if not path.is_dir():
        raise FormatError(f"There is no folder {path}: give the folder that a field was saved in.")
    for name in (DESCRIPTION, TENSORS):
        if not (path / name).is_file():
            raise FormatError(f"{path} is not a saved field: it has no {name}.")
    content = (path / TENSORS).read_bytes()
    try:
        description = json.loads((path / DESCRIPTION).read_text())
        version = description["format"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise FormatError(f"{path / DESCRIPTION} is damaged: it is not the JSON that a saved field has.") from None
    if version != FORMAT:
        raise FormatError(
            f"{path} has format {version!r}, but thetafield {__version__} reads format {FORMAT}: update thetafield."
        )
    if description.get("checksum") != _checksum(description, content):
        raise FormatError(f"{path} was altered or truncated after it was saved: its checksum does not match.")
    try:
        return _build(description, load(content))
    except (SafetensorError, KeyError, TypeError, RuntimeError, OptionError) as error:
        raise FormatError(
            f"{path} describes a field that thetafield {__version__} cannot build: save it again with this version."
        ) from error


def _build(description: dict[str, Any], tensors: dict[str, Tensor]) -> Model:
    recipe = Recipe(**_as_tuples(description["recipe"]))
    kind, config = description["field"]["kind"], _as_tuples(description["field"]["config"])

    def part(name: str) -> dict[str, Tensor]:
        return {key.partition("/")[2]: value for key, value in tensors.items() if key.startswith(f"{name}/")}

    affines = {name: Affine(**part(name)) if used else None for name, used in description["standardised"].items()}
    parts = {
        "recipe": recipe,
        "scaler": DescriptorScaler(**part("scaler")),
        "trust": _trust(part("trust")["anchors"], description["trust"]),
        "classes": _labels_from_json(description["classes"]),
        "inputs": affines["inputs"],
        "outputs": affines["outputs"],
        "encoder": None if description.get("encoder") is None else TableEncoder.from_json(description["encoder"]),
        "conformal": Conformal(**part("conformal")) if part("conformal") else None,
    }
    if kind == Forest.kind:
        return DirectModel(answers=Forest(part("answers"), **config), **parts)
    predictor = PREDICTORS[recipe.predictor](recipe.input_shape, recipe.num_outputs, **recipe.predictor_options)
    if recipe.lift is not None:
        predictor = lifted(predictor, recipe.lift)
    field = FIELDS[kind](**config)
    predictor.load_state_dict(part("predictor"))
    field.load_state_dict(part("field"))
    return FieldModel(predictor=predictor.eval(), field=field.eval(), **parts)


def _named(model: Model) -> dict[str, Any]:
    """Return what a model is built from again."""
    if isinstance(model, FieldModel):
        return {"kind": model.field.kind, "config": model.field.config}
    assert isinstance(model, DirectModel) and isinstance(model.answers, Forest)
    return {"kind": Forest.kind, "config": model.answers.config}


def _learned(model: Model) -> dict[str, dict[str, Tensor]]:
    """Return what was learned."""
    if isinstance(model, FieldModel):
        return {"predictor": model.predictor.state_dict(), "field": model.field.state_dict()}
    assert isinstance(model, DirectModel) and isinstance(model.answers, Forest)
    return {"answers": model.answers.arrays}


def _tensors(model: Model) -> dict[str, Tensor]:
    groups: dict[str, dict[str, Tensor]] = _learned(model) | {
        "scaler": {"low": model.scaler.low, "high": model.scaler.high},
        "trust": {"anchors": model.trust.anchors},
        "conformal": {} if model.conformal is None else {"levels": model.conformal.levels},
        "inputs": {} if model.inputs is None else model.inputs.state_dict(),
        "outputs": {} if model.outputs is None else model.outputs.state_dict(),
    }
    # Copies: safetensors refuses tensors that share memory, as scaler and anchors may.
    return {f"{group}/{name}": t.clone() for group, content in groups.items() for name, t in content.items()}


def _trust(anchors: Tensor, stored: dict[str, Any]) -> Trust:
    content = _as_tuples(stored)
    for name in ("blind", "sighted"):
        if content[name] is not None:
            terrain = content[name]["terrain"]
            content[name]["terrain"] = None if terrain is None else Terrain(**terrain)
            content[name] = Calibration(**content[name])
    return Trust(anchors, **content)


def _checksum(description: dict[str, Any], content: bytes) -> str:
    rest = {key: value for key, value in description.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    digest.update(content)
    return digest.hexdigest()


def _as_tuples(value: Any) -> Any:
    """Return JSON with tuples for its lists, as they were before they were stored."""
    if isinstance(value, dict):
        return {key: _as_tuples(part) for key, part in value.items()}
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _labels_to_json(classes: np.ndarray | None) -> dict[str, Any] | None:
    if classes is None:
        return None
    values = classes.tolist()
    if not all(isinstance(value, str | int | float | bool) for value in values):
        raise FormatError(f"Only text, number and Boolean labels can be saved, but the labels are {values[:3]!r} ….")
    return {"dtype": "object" if classes.dtype == object else classes.dtype.str, "values": values}


def _labels_from_json(stored: dict[str, Any] | None) -> np.ndarray | None:
    return None if stored is None else np.array(stored["values"], dtype=np.dtype(stored["dtype"]))


def tensor_digest(tensors: list[Tensor]) -> str:
    """Return a digest of tensors' values: the data part of a run's fingerprint."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
