"""The folder that a person names: a saved model, or a trial with one inside, and what the trial says of its data."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Registered
from thetafield.datasets.own_table import OwnTable
from thetafield.errors import FormatError, NeedError, ThetafieldError
from thetafield.fields.model import Model
from thetafield.fields.storage import DESCRIPTION, read_model

LARGEST = 100_000_000  # bytes of a table that is read without being asked for


@dataclass(frozen=True, eq=False)
class Saved:
    """A saved model and the trial that it comes from, where there is one.

    Args:
        model: The model.
        trial: `result.json` of the trial.
    """

    model: Model
    trial: dict[str, Any] | None = None

    @property
    def dataset(self) -> str | None:
        """What the model was trained on, if known."""
        return None if self.trial is None else str(self.trial.get("dataset"))

    def training_domains(self) -> DomainSet:
        """Build the training domains again.

        Raises:
            ThetafieldError: They are not known, not here, or not those that the field was trained on.
        """
        if self.trial is None:
            raise NeedError("--samples needs the folder of a trial, which says what the field was trained on.")
        options = self.trial.get("dataset_options") or {}
        try:
            if "path" in options and "target" in options:
                given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
                task: OwnTable | Registered = OwnTable(**given)
            else:
                task = Registered(str(self.trial["dataset"]), options)
            domains = task.build(int(self.trial["seed"])).train
        except (KeyError, TypeError) as error:
            raise FormatError(f"The trial's result.json does not say what it was trained on ({error}).") from None
        except OSError as error:
            raise NeedError(f"The data of {self.dataset} cannot be read ({error.strerror}).") from None
        anchors = self.model.scaler(domains.z.float())
        if anchors.shape != self.model.trust.anchors.shape or not anchors.allclose(self.model.trust.anchors, atol=1e-4):
            raise NeedError(f"The training domains of {self.dataset} here are not those that the field was trained on.")
        return domains


def open_saved(folder: Path) -> Saved:
    """Read the folder of a saved field, or of a trial that has one inside.

    Raises:
        FormatError: There is no such folder, it holds no field, or the field is damaged.
    """
    if not folder.is_dir():
        raise FormatError(f"There is no folder {folder}: give the folder of a trial or of a saved field.")
    if (folder / DESCRIPTION).is_file():
        return Saved(read_model(folder), _trial(folder.parent) if folder.name == "field" else None)
    if (folder / "field").is_dir():
        return Saved(read_model(folder / "field"), _trial(folder))
    raise FormatError(f"{folder} holds no saved field: `thetafield train … --out DIR` writes one.")


def samples_by_default(saved: Saved, per_domain: int) -> tuple[DomainSet | None, str | None]:
    """Return a few samples where inputs are points of a plane and the data is at hand, or a sentence why not."""
    if saved.trial is None or saved.model.recipe.input_shape != (2,):
        return None, None
    try:
        return draw(saved.training_domains(), per_domain), None
    except ThetafieldError as error:
        return None, str(error)


def own_domains(saved: Saved) -> DomainSet | None:
    """Return the domains of the own table that a trial was trained on, where it is at hand and not large."""
    path = ((saved.trial or {}).get("dataset_options") or {}).get("path")
    try:
        if path is None or Path(path).stat().st_size > LARGEST:
            return None
        return saved.training_domains()
    except (OSError, ThetafieldError):
        return None


def draw(domains: DomainSet, per_domain: int) -> DomainSet:
    """Return the domains with samples spread evenly over each, that many at most."""
    kept = []
    for start, end in zip(domains.offsets[:-1].tolist(), domains.offsets[1:].tolist(), strict=True):
        count = min(per_domain, end - start)
        kept.append([start + (end - start) * k // count for k in range(count)])
    rows = [row for part in kept for row in part]
    offsets = domains.offsets.new_tensor([0, *(len(part) for part in kept)]).cumsum(0)
    return DomainSet(
        x=domains.x[rows],
        y=domains.y[rows],
        z=domains.z,
        offsets=offsets,
        ids=domains.ids,
        descriptors=domains.descriptors,
        factors=domains.factors,
        classes=domains.classes,
        features=domains.features,
        encoder=domains.encoder,
    )


def _trial(folder: Path) -> dict[str, Any] | None:
    path = folder / "result.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise FormatError(f"{path} is damaged: it is not the JSON that a trial writes.") from None
    return content if isinstance(content, dict) else None
