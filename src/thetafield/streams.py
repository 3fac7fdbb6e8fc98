"""One root seed, independent named streams.

Every random draw of a run is a function of (root seed, stream name, counters) and of nothing else. A generator
therefore never has to be stored: step 1,234 draws the same numbers whether or not the run was killed at step 1,233.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def stream_seed(root: int, *names: str | int) -> int:
    """Return the 63-bit seed of the stream called `names` under the root seed.

    >>> stream_seed(0, "batches", 3) == stream_seed(0, "batches", 3)
    True
    >>> stream_seed(0, "batches", 3) == stream_seed(0, "batches", 4)
    False
    """
    key = repr((int(root), *names)).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1


def torch_stream(root: int, *names: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a fresh torch generator for the stream called `names`."""
    return torch.Generator(device=device).manual_seed(stream_seed(root, *names))


def numpy_stream(root: int, *names: str | int) -> np.random.Generator:
    """Return a fresh numpy generator for the stream called `names`."""
    return np.random.default_rng(stream_seed(root, *names))


def reseed(device: torch.device, root: int, *names: str | int) -> None:
    """Set the global generator of one device from a stream.

    `torch.manual_seed` also tells every absent kind of device, with a stack trace each, which takes longer than a
    small training step.
    """
    if device.type == "cuda":
        torch.cuda.init()
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(stream_seed(root, *names))
    else:
        torch.default_generator.manual_seed(stream_seed(root, *names))


@contextmanager
def seeded(root: int, *names: str | int) -> Iterator[None]:
    """Seed torch's global generators from a stream inside the block and give the caller's states back after it."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(stream_seed(root, *names))
        yield
