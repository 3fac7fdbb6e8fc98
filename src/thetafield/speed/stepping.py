"""A method in training, a stretch of steps at a time, through the same code as `fit`."""

from dataclasses import replace

from thetafield.methods.base import Method
from thetafield.speed.timing import Work
from thetafield.training.fit import READ_EVERY, tensor_cores
from thetafield.training.running import Running


def _same_order(epoch: int) -> None:
    """Leave the domains in the order they are in."""


class Stepping:
    """Takes steps of a method's last phase, drawing and Adam included, and reads the losses as often as training does.

    Args:
        method: The method, on its device.
        steps: Steps at a time, where an epoch is too long; the order of the domains then stays as it is. An epoch at a
            time where it is None.
        capture: Whether steps on a GPU are recorded once and replayed.
    """

    def __init__(self, method: Method, steps: int | None = None, capture: bool = True) -> None:
        method.train()
        phase = method.phases()[-1]
        if steps is not None:
            steps = min(steps, phase.steps_per_epoch)
            phase = replace(phase, steps=READ_EVERY * steps, steps_per_epoch=steps, begin_epoch=_same_order)
        phase.begin()
        self.stretch = 1 if phase.device.type == "cpu" else max(1, READ_EVERY // phase.steps_per_epoch)
        self.phase, self.epoch = phase, 0
        self.running = Running(phase, self.stretch, capture)

    def run(self) -> None:
        """Take the steps of one stretch; after the last epoch comes the first one again."""
        if self.epoch + self.stretch > self.phase.epochs:
            self.epoch = 0
        epochs = range(self.epoch, self.epoch + self.stretch)
        with tensor_cores():
            for epoch in epochs:
                self.running.run_epoch(epoch)
        list(self.running.losses(epochs))
        self.epoch = epochs.stop

    @property
    def steps(self) -> Work:
        """What is to be timed, counted in steps."""
        return Work(self.run, units=self.stretch * self.phase.steps_per_epoch)

    @property
    def epochs(self) -> Work:
        """What is to be timed, counted in epochs."""
        return Work(self.run, units=self.stretch)

    @property
    def optimiser_bytes(self) -> int:
        """Memory of what Adam keeps."""
        return sum(tensor.nbytes for tensor in self.running.tensors().values())
