"""Arrays that took long to make, kept beside the data: written whole, checked on reading, made anew where damaged."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from thetafield.files import write_whole

FORMAT = 1


def cache_root() -> Path:
    """Return the folder named by THETAFIELD_CACHE, else thetafield/cache in the user's cache."""
    named = os.environ.get("THETAFIELD_CACHE")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "thetafield" / "cache"


def cached(
    name: str, key: Mapping[str, Any], files: list[Path], make: Callable[[], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """Return the tensors of an earlier call with the same key and the same files, or make and keep them.

    A cache that cannot be read, was cut short or altered is made anew; one that cannot be written is done without.

    Args:
        name: What they are, as the beginning of the file's name.
        key: All that determines the tensors besides the files, in plain JSON values.
        files: The files they are made from; a change of size or time makes them anew.
        make: Makes them.
    """
    stamps = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    identity = json.dumps({"format": FORMAT, "name": name, "key": dict(key), "files": stamps}, sort_keys=True)
    path = cache_root() / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.safetensors"
    found = _read(path)
    if found is not None:
        return found
    tensors = {part: tensor.contiguous() for part, tensor in make().items()}
    try:
        write_whole(path, save(tensors, {"checksum": _checksum(tensors)}))
    except OSError as error:  # a full or read-only disk costs time at the next call, and nothing else
        warnings.warn(f"The cache {path} could not be written ({error.strerror}): {name} is made anew.", stacklevel=2)
    return tensors


def _read(path: Path) -> dict[str, Tensor] | None:
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as stored:
            tensors = {part: stored.get_tensor(part) for part in stored.keys()}  # noqa: SIM118
            checksum = (stored.metadata() or {}).get("checksum")
    except (SafetensorError, OSError):
        return None
    return tensors if checksum == _checksum(tensors) else None


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of values, types and shapes."""
    digest = hashlib.blake2b(digest_size=16)
    for part in sorted(tensors):
        tensor = tensors[part]
        digest.update(f"{part} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
