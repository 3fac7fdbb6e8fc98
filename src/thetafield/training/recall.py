"""What a phase left behind, for other trainings that come to the same point."""

import torch
from torch import Tensor

from thetafield.fields.storage import tensor_digest
from thetafield.methods.base import Method
from thetafield.methods.phase import Phase


class Recall:
    """Remembers what phases end with, by what they began with.

    Every draw of a phase is a function of the seed and the step. So trainings of one method on the same domains with
    the same seed, which differ in what comes later, go through the same steps from the same start, and need not.
    """

    def __init__(self) -> None:
        self.kept: dict[str, list[Tensor]] = {}

    def key(self, method: Method, phase: Phase) -> str:
        """Return what a phase that has begun depends on, as far as trainings differ in it."""
        begun = [*phase.parameters, *method.predictor.state_dict().values()]
        return f"{phase.name} {phase.steps} {phase.recurs} {tensor_digest(begun)}"

    @torch.no_grad()
    def restore(self, key: str, method: Method, phase: Phase) -> bool:
        """Put all that a phase leaves where it ended before, and return whether it has."""
        if key not in self.kept:
            return False
        for tensor, kept in zip(_left(method, phase), self.kept[key], strict=True):
            tensor.copy_(kept)
        return True

    def keep(self, key: str, method: Method, phase: Phase) -> None:
        """Remember where a phase has ended."""
        self.kept[key] = [tensor.detach().clone() for tensor in _left(method, phase)]


def _left(method: Method, phase: Phase) -> list[Tensor]:
    # A backbone may keep statistics of what it has seen.
    return [*phase.parameters, *phase.leaves, *method.predictor.backbone.buffers()]
