"""A run's whole state in one file, written whole or not at all: safetensors with JSON in its header."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from thetafield.errors import FormatError
from thetafield.files import plain, write_file
from thetafield.training.spread import Spread

FORMAT = 3
NAME = "checkpoint.safetensors"
NOT_SPREAD = Spread()


@dataclass
class State:
    """Where a run stands: after `epoch` epochs of phase number `phase`.

    Args:
        phase: Index of the phase.
        epoch: Epochs of it that are done.
        method: The method's tensors.
        optimiser: Adam's tensors by name.
        work: How much a step does, as it was measured last.
        best: The kept parameters of the best epoch so far, if the phase keeps the best.
        best_loss: Its loss, on the device.
        history: One record per epoch.
        seconds: Training time so far.
    """

    phase: int = 0
    epoch: int = 0
    method: dict[str, Tensor] = field(default_factory=dict)
    optimiser: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_loss: Tensor | None = None
    work: tuple[int, ...] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


class Checkpoint:
    """The checkpoint file of one run.

    Args:
        folder: Where it lies.
        fingerprint: What determines the run's result; a checkpoint of another run is refused.
        every: Least seconds between two writes.
    """

    def __init__(self, folder: Path, fingerprint: dict[str, Any], every: float = 20.0) -> None:
        self.path = Path(folder) / NAME
        self.fingerprint = plain(fingerprint)
        self.every = every

    def write(self, state: State, spread: Spread = NOT_SPREAD) -> None:
        """Put the state on the disk: the first rank does, with the rows that all of them send it."""
        groups = {"method": state.method, "optimiser": state.optimiser, "best": state.best}
        tensors = {
            f"{group}/{name}": spread.whole(f"{group}/{name}", tensor)
            for group, content in groups.items()
            for name, tensor in content.items()
        }
        if not spread.ranks.first:
            return
        same = _same(tensors)
        tensors = {name: t.detach().cpu().contiguous() for name, t in tensors.items() if name not in same}
        header = {
            "format": FORMAT,
            "same": same,
            "fingerprint": self.fingerprint,
            "phase": state.phase,
            "epoch": state.epoch,
            "best_loss": None if state.best_loss is None else float(state.best_loss),
            "work": state.work,
            "history": state.history,
            "seconds": state.seconds,
        }
        # Straight from where the tensors are: a copy in memory would be as large as all that training holds.
        write_file(self.path, lambda place: _save(tensors, place, {"thetafield": json.dumps(header)}))

    def read(self, device: torch.device, spread: Spread = NOT_SPREAD) -> State | None:
        """Return the stored state with this rank's part of what is spread, or None where there is no checkpoint yet."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt", device=str(device)) as stored:
                header = json.loads((stored.metadata() or {})["thetafield"])
                tensors = {
                    name: stored.get_slice(name)[spread.part] if name in spread else stored.get_tensor(name)
                    for name in stored.keys()  # noqa: SIM118
                }
        except (SafetensorError, KeyError, json.JSONDecodeError, OSError) as error:
            raise FormatError(
                f"The checkpoint {self.path} cannot be read ({error}): delete it to start this run afresh."
            ) from error
        if header["format"] != FORMAT:
            raise FormatError(
                f"The checkpoint {self.path} has format {header['format']}, this version reads {FORMAT}: delete it."
            )
        for key in sorted(self.fingerprint.keys() | header["fingerprint"].keys()):
            stored_value, value = header["fingerprint"].get(key), self.fingerprint.get(key)
            if stored_value != value:
                raise FormatError(
                    f"The checkpoint {self.path} belongs to another run: its {key} is {stored_value!r}, this run's is "
                    f"{value!r}. Use the same settings, another folder, or delete it."
                )
        best = header["best_loss"]
        groups: dict[str, dict[str, Tensor]] = {"method": {}, "optimiser": {}, "best": {}}
        for name, tensor in [*tensors.items(), *((name, tensors[first]) for name, first in header["same"].items())]:
            group, _, key = name.partition("/")
            groups[group][key] = tensor
        return State(
            phase=header["phase"],
            epoch=header["epoch"],
            best_loss=None if best is None else torch.tensor(best, dtype=torch.float64, device=device),
            work=None if header["work"] is None else tuple(header["work"]),
            history=header["history"],
            seconds=header["seconds"],
            method=groups["method"],
            optimiser=groups["optimiser"],
            best=groups["best"],
        )


def _save(tensors: dict[str, Tensor], place: Path, metadata: dict[str, str]) -> None:
    """Write tensors; an error of the disk is one of Python's, with its number."""
    try:
        save_file(tensors, place, metadata)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _same(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return, by name, the first name of the same tensor: a backbone that two models share is written once.

    >>> one = torch.zeros(2)
    >>> _same({"a": one, "b": torch.zeros(2), "c": one.detach()})
    {'c': 'a'}
    """
    first, found = dict[tuple[object, ...], str](), dict[str, str]()
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and first.setdefault(place, name) != name:
            found[name] = first[place]
    return found
