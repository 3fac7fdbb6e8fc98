"""What lies in the files of a store: read, and refused in a sentence where it is damaged."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thetafield.errors import ThetafieldError
from thetafield.files import read_json


class StoreError(ThetafieldError):
    """A store cannot be used: in use already, of another format, or on a disk that is full."""


def read_record(path: Path) -> dict[str, Any]:
    """Return what a file of a store says.

    Raises:
        StoreError: It is damaged.
    """
    try:
        content = read_json(path)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise _damaged(path)
    return content


def read_result(path: Path) -> dict[str, Any]:
    """Return what a finished trial came to.

    Raises:
        StoreError: It has no score: the disk, or somebody, has damaged it.
    """
    content = read_record(path)
    if not is_result(content):
        raise _damaged(path)
    return content


def is_result(content: Any) -> bool:
    """Return whether something is what a finished trial came to, and not a part of it."""
    score = content.get("score") if isinstance(content, dict) else None
    return isinstance(score, int | float) and math.isfinite(score)


def _damaged(path: Path) -> StoreError:
    if path.parent.name == "suites":
        return StoreError(f"{path} is damaged: delete it, and the next bench of the suite writes it again.")
    return StoreError(f"{path} is damaged: delete it to run its trial again.")


def listed(path: Path) -> list[dict[str, Any]]:
    """Return the trials that the record of a suite lists; none where there is none, or something else."""
    entries = read_record(path).get("trials") if path.exists() else None
    whole = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [entry for entry in whole if isinstance(entry.get("spec"), dict)]


def told(spec: Mapping[str, Any]) -> str:
    """Return what a suite says of a trial itself but its data: keys change with methods and datasets, this does not."""
    return json.dumps([spec.get(name) for name in ("dataset", "method", "options", "seed", "tune")], sort_keys=True)


def alike(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether two trials of a dataset agree in all options that both know: it may have got new ones since."""
    ours, theirs = (spec.get("dataset_options") or {} for spec in (new, old))
    return all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys())
