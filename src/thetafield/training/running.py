"""A phase in motion: its optimisers, its counters on the device, and the losses of the epochs under way."""

from collections.abc import Iterator

import torch
from torch import Tensor

from thetafield.methods.phase import Phase, Step
from thetafield.ranks import ALONE, Ranks
from thetafield.streams import reseed
from thetafield.training.adam import PlayerAdam
from thetafield.training.capture import StepRunner

MEASURE_EVERY = 64  # steps between two measurements of how much a step has to do


class Running:
    """Runs the steps of a phase and leaves their losses on the device.

    Counters, step sizes and losses live on the device, so that a step reads nothing from the host and the host reads
    nothing from a step. With several ranks, steps talk and are never recorded; what is read is the loss of all of them.

    Args:
        phase: The phase.
        stretch: Largest number of epochs between two readings of the losses.
        capture: Whether steps are recorded where the device can.
        ranks: Who takes the same steps, each on a part of the batch.
    """

    def __init__(self, phase: Phase, stretch: int, capture: bool, ranks: Ranks = ALONE) -> None:
        self.phase, self.ranks = phase, ranks
        self.optimisers = [PlayerAdam(player, phase.device, ranks) for player in phase.players]
        self.runner = StepRunner(phase.device, phase.captured and capture and not ranks.several)
        self.work: tuple[int, ...] | None = None
        # The step within the phase, within the epoch, and within the stretch.
        self.counters = torch.zeros(3, dtype=torch.long, device=phase.device)
        factors = [phase.schedule((step + 1) / phase.steps) for step in range(phase.steps)]
        self.factors = torch.tensor(factors, device=phase.device, dtype=torch.float64).to(self._size_dtype)
        self.rows = stretch * phase.steps_per_epoch
        self.terms: dict[int, tuple[str, ...]] = {}
        self.values: dict[int, Tensor] = {}
        self.first_epoch = 0
        self.epochs = 0

    @property
    def _size_dtype(self) -> torch.dtype:
        return torch.float32 if self.phase.device.type == "cuda" else torch.float64

    def run_epoch(self, epoch: int) -> None:
        """Run the steps of an epoch."""
        steps = self.phase.steps_of(epoch)
        if not self.epochs:
            self.first_epoch = epoch
        self.epochs += 1
        row = steps.start - self.first_epoch * self.phase.steps_per_epoch
        self.counters.copy_(torch.tensor([steps.start, 0, row]), non_blocking=True)
        self.phase.begin_epoch(epoch)
        for number in steps:
            if self.phase.work is not None and _is_due(number):
                self.work = self.phase.work.measure()
                self.phase.work.adopt(self.work)
            self.phase.reseed(number)
            acting = self.phase.acting(number)
            self.runner.run((acting, self.work), lambda: self._step(number, acting))  # noqa: B023  (runs at once)

    def _step(self, number: int, acting: tuple[int, ...]) -> None:
        """Draw a batch and let the players act on it."""
        step, slot, row = self.counters.split(1)
        batch = self.phase.draw(Step(number, slot))
        if self.ranks.several:  # all have drawn the same; noise such as dropout is everyone's own
            reseed(self.phase.device, self.phase.seed, self.phase.name, number, "rank", self.ranks.rank)
        factor = self.factors[step][0]
        for player in acting:
            terms = self.phase.players[player].loss(batch)
            values = torch.stack(list(terms.values()))
            if self.phase.share != 1:
                values = values * self.phase.share
            if player not in self.values:
                self.terms[player] = tuple(terms)
                self.values[player] = values.detach().new_zeros(self.rows, len(terms))
            self.values[player].index_copy_(0, row, values.detach()[None])
            self.optimisers[player].update(values.sum(), factor)
        self.counters.add_(1)

    def loss_of(self, epoch: int) -> Tensor:
        """Return the mean loss of an epoch under way, on the device."""
        steps, start = self.phase.steps_of(epoch), self.first_epoch * self.phase.steps_per_epoch
        acted = [step - start for step in steps if 0 in self.phase.acting(step)]
        rows = self.values[0][steps.start - start : steps.stop - start] if len(acted) == len(steps) else None
        if rows is None:
            rows = self.values[0][torch.tensor(acted, device=self.phase.device)]
        return self.ranks.sum_(rows.double().sum(1).mean())

    def losses(self, epochs: range) -> Iterator[tuple[int, list[tuple[int, int, dict[str, float]]]]]:
        """Read the losses of the epochs under way: (epoch, [(step, player, terms)])."""
        copies = {player: values.to(torch.float64, copy=True) for player, values in self.values.items()}
        read = {player: self.ranks.sum_(values).tolist() for player, values in copies.items()}
        start = self.first_epoch * self.phase.steps_per_epoch
        for epoch in epochs:
            yield (
                epoch,
                [
                    (step, player, dict(zip(self.terms[player], read[player][step - start], strict=True)))
                    for step in self.phase.steps_of(epoch)
                    for player in self.phase.acting(step)
                ],
            )
        self.epochs = 0

    def close(self) -> None:
        """Let go of the phase."""
        for optimiser in self.optimisers:
            optimiser.close()

    def tensors(self) -> dict[str, Tensor]:
        """Return the optimisers' tensors under the names player/owner/tensor."""
        return {
            f"{player}/{name}": tensor
            for player, optimiser in enumerate(self.optimisers)
            for name, tensor in optimiser.tensors().items()
        }

    def load(self, tensors: dict[str, Tensor], work: tuple[int, ...] | None) -> None:
        """Go on from stored tensors and the stored amount of work."""
        for player, optimiser in enumerate(self.optimisers):
            own = {name.partition("/")[2]: t for name, t in tensors.items() if name.startswith(f"{player}/")}
            optimiser.load(own)
        self.work = work
        if work is not None and self.phase.work is not None:
            self.phase.work.adopt(work)


def _is_due(step: int) -> bool:
    """Return whether the amount of work is measured before a step: often at first, when networks change quickly."""
    return step % MEASURE_EVERY == 0 or (step < MEASURE_EVERY and step & (step - 1) == 0)
