"""Numbers on their way into a page: single precision and bytes, joined and packed, as one base64 text."""

import base64
import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

Reference = dict[str, int]


class Arrays:
    """Collects arrays; what describes them refers to each by its number.

    Example:
        >>> arrays = Arrays()
        >>> arrays.add(torch.zeros(2, 3))
        {'$': 0}
        >>> arrays.table
        [{'shape': [2, 3], 'type': 'float32', 'start': 0}]
    """

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self._content = bytearray()

    def add(self, values: Tensor | np.ndarray) -> Reference:
        """Take an array: bytes stay bytes, everything else becomes single precision."""
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        kind = "uint8" if array.dtype == np.uint8 else "float32"
        array = np.ascontiguousarray(array, dtype="<f4" if kind == "float32" else np.uint8)
        self._content += bytes(-len(self._content) % 4)  # a view of floats begins at a multiple of four
        self.table.append({"shape": list(array.shape), "type": kind, "start": len(self._content)})
        self._content += array.tobytes()
        return {"$": len(self.table) - 1}

    @property
    def num_bytes(self) -> int:
        """How much was taken so far."""
        return len(self._content)

    def text(self) -> str:
        """Return everything as base64 of a deflated stream.

        All first bytes of four come first, then all second ones and so on: signs and exponents are much alike, and
        deflate finds that only where they lie side by side.
        """
        content = bytes(self._content) + bytes(-len(self._content) % 4)
        planes = np.frombuffer(content, np.uint8).reshape(-1, 4).T.tobytes()
        return base64.b64encode(zlib.compress(planes, 9)).decode()


def as_double(values: Tensor) -> np.ndarray:
    """Return a tensor as numbers of double precision on the host."""
    return values.detach().to("cpu", torch.float64).numpy()
