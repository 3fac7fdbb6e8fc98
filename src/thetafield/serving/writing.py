"""The field as files: θ(z) as safetensors, the model at z as ONNX."""

import asyncio
import os
import sys
from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save
from torch import Tensor

from thetafield.errors import ExportError
from thetafield.fields.export import parse_descriptor
from thetafield.fields.storage import save_model
from thetafield.serving.memory import Known, Remembering
from thetafield.serving.refusal import Refusal

MOST_FILES = 16  # ONNX files that are kept
MOST_WAITING = 4


def read_descriptors(model: Remembering, texts: list[str], most: int) -> Tensor:
    """Return descriptors (b, d) that were written as numbers or dates with commas between them."""
    names = model.recipe.descriptors
    if not names:
        if any(texts):
            raise Refusal(400, "z was given, but this field has no descriptors: leave it out.")
        return torch.zeros(1, 0)
    said = ", ".join(names)
    if not texts:
        raise Refusal(400, f"The descriptor is missing: write ?z={','.join(names)} with a number for each.")
    if len(texts) > most:
        raise Refusal(413, f"There are {len(texts)} descriptors, but {most} are allowed: ask for some at a time.")
    rows = [parse_descriptor(model, text) for text in texts]
    for row, text in zip(rows, texts, strict=True):
        if len(row) != len(names):
            raise Refusal(400, f"z is {text[:50]!r}, but {len(names)} numbers were expected ({said}).")
    return torch.stack(rows).to(torch.float32)


def as_safetensors(model: Remembering, z: Tensor, known: Known) -> bytes:
    """Return θ(z), trust and z as one file."""
    described = {"method": model.recipe.method, "descriptors": ",".join(model.recipe.descriptors)}
    return save({"theta": known.theta.cpu(), "trust": known.trust.double(), "z": z.contiguous()}, described)


class OnnxWriter:
    """Writes the model at a descriptor as ONNX, in a process of its own: torch's exporter is slow and changes much.

    Args:
        model: The model.
    """

    def __init__(self, model: Remembering) -> None:
        self.model = model
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._folder: TemporaryDirectory[str] | None = None

    async def write(self, text: str) -> bytes:
        """Return the file for a descriptor that was written as text and is known to be one."""
        if text not in self._files:
            if self._waiting >= MOST_WAITING:
                raise Refusal(429, "Other models are being written as ONNX, which takes seconds: ask again soon.")
            self._waiting += 1
            try:
                async with self._turn:
                    if text not in self._files:
                        self._files[text] = await self._export(text)
            finally:
                self._waiting -= 1
            while len(self._files) > MOST_FILES:
                self._files.popitem(last=False)
        return self._files[text]

    async def _export(self, text: str) -> bytes:
        if self._folder is None:  # the field as it was loaded, whatever has become of its folder since
            self._folder = TemporaryDirectory(prefix="thetafield-serve-")
            save_model(self.model, Path(self._folder.name) / "field")
        folder = Path(self._folder.name)
        out = folder / "model.onnx"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "thetafield.serving.exporting", str(folder / "field"), str(out)),
            *([text] if text else []),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        )
        try:
            _, said = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            raise
        if process.returncode:
            raise ExportError(said.decode(errors="replace").strip().splitlines()[-1])
        return out.read_bytes()

    def close(self) -> None:
        """Remove what was written."""
        if self._folder is not None:
            self._folder.cleanup()
