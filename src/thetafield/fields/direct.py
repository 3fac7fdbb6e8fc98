"""A model without parameters θ: its answers come straight from inputs and descriptors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from thetafield.errors import DataError
from thetafield.fields.model import Model


class Answers(ABC):
    """What a direct method learns: (x, z) ↦ outputs, on standardised inputs, targets and descriptors."""

    @abstractmethod
    def __call__(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (M, o) for inputs (M, ...) with scaled descriptors (M, d), all on the host."""


@dataclass(eq=False, kw_only=True)
class DirectModel(Model):
    """(x, z) ↦ answers, with the scalings fitted on the training domains. There is no θ to ask for.

    Args:
        answers: What was learned.
    """

    answers: Answers

    @property
    def device(self) -> torch.device:
        """The host, wherever training was asked for."""
        return torch.device("cpu")

    def to(self, device: torch.device | str) -> "DirectModel":
        """Stay on the host."""
        return self

    @torch.no_grad()
    def domain_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (b, n, o) for n samples of each of b domains: logits, or targets on their raw scale."""
        rows = z[:, None].expand(-1, x.shape[1], -1).flatten(0, 1)
        return self.row_outputs(x.flatten(0, 1), rows).unflatten(0, x.shape[:2])

    @torch.no_grad()
    def row_outputs(self, x: Tensor, z: Tensor) -> Tensor:
        """Return outputs (M, o) for M rows with a raw descriptor each."""
        if len(x) != len(z):
            raise DataError(f"There are {len(x)} rows of inputs but {len(z)} descriptors: give one z per row.")
        inputs = x.float() if self.inputs is None else self.inputs(x.float())
        answer = self.answers(inputs, self.scaler(z.float()))
        return answer if self.outputs is None else self.outputs.inverse(answer)

    def relevance(self) -> dict[str, float]:
        """Return nothing: without θ there is no shift of θ to measure."""
        return {}
