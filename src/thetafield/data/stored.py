"""Domains on the disk: written piece by piece, opened as a memory map, so that a draw touches only what it needs."""

import json
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from thetafield.data.domains import DomainSet
from thetafield.data.encoder import TableEncoder
from thetafield.errors import FormatError
from thetafield.files import write_folder

FORMAT = 1
HEADER = 248  # bytes kept free for the description of a file whose length is known at its end
DTYPES = {
    torch.uint8: ("U8", np.dtype("uint8")),
    torch.int64: ("I64", np.dtype("int64")),
    torch.float16: ("F16", np.dtype("float16")),
    torch.float32: ("F32", np.dtype("float32")),
    torch.float64: ("F64", np.dtype("float64")),
}
NUMPY = {name: kind for name, kind in DTYPES.values()}


def store_domains(parts: Iterable[DomainSet], path: Path) -> None:
    """Write domains into the folder `path`, whole or not at all; only one part at a time is in memory.

    Args:
        parts: Domains in pieces that share names, classes and shapes.
        path: The folder; an older one is replaced.
    """

    def fill(folder: Path) -> None:
        z, sizes, ids, first = [], [], [], None
        with (folder / "x.safetensors").open("wb") as x_file, (folder / "y.safetensors").open("wb") as y_file:
            for file in (x_file, y_file):
                file.write(bytes(8 + HEADER))
            for part in parts:
                first = first or part
                x_file.write(_bytes(part.x.to(first.x.dtype)))
                y_file.write(_bytes(part.y.to(first.y.dtype)))
                z.append(part.z)
                sizes.append(part.sizes)
                ids += part.ids.tolist()
            if first is None:
                raise FormatError("There are no domains to store: give at least one part.")
            total = int(torch.cat(sizes).sum())
            _describe(x_file, "x", first.x, total)
            _describe(y_file, "y", first.y, total)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.cat(sizes).cumsum(0)])
        save_file({"z": torch.cat(z).contiguous(), "offsets": offsets}, folder / "z.safetensors")
        description = {
            "format": FORMAT,
            "ids": ids,
            "descriptors": first.descriptors,
            "factors": first.factors,
            "classes": None if first.classes is None else first.classes.tolist(),
            "features": first.features,
            "encoder": None if first.encoder is None else first.encoder.to_json(),
        }
        (folder / "domains.json").write_text(json.dumps(description) + "\n")

    write_folder(Path(path), fill)


def open_domains(path: Path) -> DomainSet:
    """Open a folder written by :func:`store_domains` without reading its samples.

    Raises:
        FormatError: The folder is missing a file, was cut short, or is of another format.
    """
    path = Path(path)
    try:
        description = json.loads((path / "domains.json").read_text())
        if description["format"] != FORMAT:
            raise FormatError(f"{path} has format {description['format']!r}, but this version reads {FORMAT}.")
        small = load_file(path / "z.safetensors")
        x, y = _mapped(path / "x.safetensors", "x"), _mapped(path / "y.safetensors", "y")
        if not len(x) == len(y) == int(small["offsets"][-1]):
            raise ValueError("its files disagree in length")
    except (OSError, KeyError, ValueError, TypeError, SafetensorError, struct.error) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is no stored set of domains, or it is damaged ({error}): store it again.") from None
    features, encoder, classes = description["features"], description["encoder"], description["classes"]
    return DomainSet(
        x=x,
        y=y,
        z=small["z"],
        offsets=small["offsets"],
        ids=np.array(description["ids"]),
        descriptors=tuple(description["descriptors"]),
        factors=tuple(description["factors"]),
        classes=None if classes is None else np.array(classes),
        features=None if features is None else tuple(features),
        encoder=None if encoder is None else TableEncoder.from_json(encoder),
        on_disk=True,
    )


def _bytes(tensor: Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data


def _describe(file: Any, name: str, like: Tensor, rows: int) -> None:
    """Put the header of a safetensors file into the room that was kept for it."""
    shape = [rows, *like.shape[1:]]
    size = file.tell() - 8 - HEADER
    entry = {name: {"dtype": DTYPES[like.dtype][0], "shape": shape, "data_offsets": [0, size]}}
    file.seek(0)
    file.write(struct.pack("<Q", HEADER) + json.dumps(entry).encode().ljust(HEADER))


def _mapped(path: Path, name: str) -> Tensor:
    """Return the one tensor of a safetensors file as a memory map."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > 2**20:
            raise ValueError(f"{path.name} has no header")
        entry = json.loads(file.read(length))[name]
    kind, shape = NUMPY[entry["dtype"]], tuple(entry["shape"])
    expected = 8 + length + kind.itemsize * int(np.prod(shape))
    if path.stat().st_size != expected:
        raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes instead of {expected:,}")
    # Copy on write: torch wants memory that it may write to, and nothing here ever does.
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if hasattr(mmap, "MADV_RANDOM"):  # draws hop about: reading ahead would bring in sixteen pages for one
        mapped.madvise(mmap.MADV_RANDOM)
    return torch.from_numpy(np.frombuffer(mapped, kind, offset=8 + length).reshape(shape))
