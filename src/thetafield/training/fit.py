"""The loop: phases, epochs, steps. The only owner of optimisers."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from thetafield.errors import DivergenceError
from thetafield.methods.base import Method, Phase, Player
from thetafield.streams import reseed, seeded
from thetafield.training.checkpoint import Checkpoint, State


@dataclass(frozen=True)
class Progress:
    """What a display needs after an epoch."""

    phase: str
    epoch: int
    epochs: int
    done: int
    total: int
    loss: float | None


Report = Callable[[Progress], None]


def fit(method: Method, checkpoint: Checkpoint | None = None, report: Report | None = None) -> State:
    """Train a method through its phases and return the final state with its history.

    An epoch is the unit of everything but the step itself: losses are read from the device, checked, recorded and
    checkpointed once per epoch. Every draw is a function of the seed and the counters, so a run that resumes from a
    checkpoint goes through the same steps as one that was never stopped.

    Args:
        method: The method, on its device.
        checkpoint: Where to keep the state; an existing checkpoint is resumed.
        report: Called after every epoch.

    Raises:
        DivergenceError: A loss term stopped being finite; the last good checkpoint is kept.
    """
    phases = method.phases()
    device = next(method.parameters()).device
    resumed = checkpoint.read(device) if checkpoint else None
    state = resumed or State()
    if resumed:
        method.load_state_dict(resumed.method)
    loop = _Loop(method, phases, state, checkpoint, report)
    method.train()
    with seeded(method.problem.seed, "noise"), loop.interruptible():
        for number in range(state.phase, len(phases)):
            loop.run_phase(number, resumed if number == state.phase else None)
    method.eval()
    return state


@dataclass(frozen=True)
class _Record:
    """The loss terms of one player's step, still on the device."""

    player: int
    step: int
    terms: tuple[str, ...]
    values: Tensor


class _Loop:
    """The state of a run in motion."""

    def __init__(
        self,
        method: Method,
        phases: list[Phase],
        state: State,
        checkpoint: Checkpoint | None,
        report: Report | None,
    ) -> None:
        self.method, self.phases, self.state = method, phases, state
        self.checkpoint, self.report = checkpoint, report
        self.device = next(method.parameters()).device
        self.started = time.perf_counter() - state.seconds
        self.last_write = time.perf_counter()
        self.stopping = False

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a first Ctrl-C finish the epoch and write the checkpoint; a second one ends at once."""
        if self.checkpoint is None or threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def run_phase(self, number: int, resumed: State | None) -> None:
        """Run what is left of a phase and keep its last or its best parameters."""
        phase, state = self.phases[number], self.state
        optimisers = [
            torch.optim.Adam(_groups(p), lr=p.lr, weight_decay=p.weight_decay, betas=p.betas, fused=True)
            for p in phase.players
        ]
        if resumed:
            _load_optimisers(optimisers, resumed.optimiser)
        else:
            phase.begin()
            state.phase, state.epoch, state.best, state.best_loss = number, 0, {}, None
        for epoch in range(state.epoch, phase.epochs):
            if self.stopping:
                raise KeyboardInterrupt
            loss = self._epoch(phase, epoch, optimisers)
            _check_parameters(phase)
            state.epoch = epoch + 1
            if phase.keep == "best" and epoch >= int(phase.judge_from * phase.epochs):
                judged = loss if phase.judge is None else self._judged(phase.judge)
                if state.best_loss is None or judged < state.best_loss:
                    state.best_loss = judged
                    state.best = {name: t.detach().clone() for name, t in self.method.state_dict().items()}
            self._after_epoch(phase, optimisers, loss)
        if phase.keep == "best":
            self.method.load_state_dict(state.best)  # buffers too: running statistics belong to their parameters
            state.best = {}

    @torch.no_grad()
    def _judged(self, judge: Callable[[], Tensor]) -> float:
        """Return a loss without dropout, as prediction will see it."""
        self.method.eval()
        value = float(judge())
        self.method.train()
        return value if math.isfinite(value) else math.inf

    def _epoch(self, phase: Phase, epoch: int, optimisers: list[torch.optim.Adam]) -> float:
        """Run the steps of an epoch and return its mean loss."""
        seed, total = self.method.problem.seed, phase.epochs * phase.steps_per_epoch
        records: list[_Record] = []
        for step, batch in enumerate(phase.batches(epoch), start=epoch * phase.steps_per_epoch):
            reseed(self.device, seed, "noise", phase.name, step)
            for number in phase.acting(step):
                player, optimiser = phase.players[number], optimisers[number]
                for group in optimiser.param_groups:
                    group["lr"] = group["rate"] * player.lr * phase.schedule((step + 1) / total)
                terms = player.loss(batch)
                values = torch.stack(list(terms.values()))
                optimiser.zero_grad(set_to_none=True)
                values.sum().backward(inputs=player.parameters)
                optimiser.step()
                records.append(_Record(number, step, tuple(terms), values.detach()))
        return self._record(phase, epoch, records)

    def _record(self, phase: Phase, epoch: int, records: "list[_Record]") -> float:
        """Read the epoch's losses from the device at once, check them, and append their means to the history."""
        values = torch.cat([record.values for record in records]).double().cpu()
        numbers = iter(values.tolist())
        means: dict[str, list[float]] = {}
        losses: list[float] = []
        for record in records:
            step_terms = {term: next(numbers) for term in record.terms}
            self._check_losses(phase, record.step, step_terms)
            for term, value in step_terms.items():
                means.setdefault(term, []).append(value)
            if record.player == 0:
                losses.append(sum(step_terms.values()))
        loss = sum(losses) / len(losses)
        terms = {term: sum(each) / len(each) for term, each in means.items()}
        self.state.history.append({"phase": phase.name, "epoch": epoch + 1, "loss": loss} | terms)
        return loss

    def _check_losses(self, phase: Phase, step: int, terms: dict[str, float]) -> None:
        for term, value in terms.items():
            if not math.isfinite(value):
                kept = ""
                if self.checkpoint and self.checkpoint.path.exists():
                    kept = f" The last good state is kept in {self.checkpoint.path}."
                raise DivergenceError(
                    f"Training diverged in phase {phase.name!r}, step {step + 1}: the loss term {term!r} is {value}."
                    f"{kept} Try a smaller lr, or scale the inputs."
                )

    def _after_epoch(self, phase: Phase, optimisers: list[torch.optim.Adam], loss: float) -> None:
        state, now = self.state, time.perf_counter()
        state.seconds = now - self.started
        total = sum(p.epochs for p in self.phases)
        done = sum(p.epochs for p in self.phases[: state.phase]) + state.epoch
        if self.report:
            self.report(Progress(phase.name, state.epoch, phase.epochs, done, total, loss))
        if self.checkpoint and (self.stopping or now - self.last_write >= self.checkpoint.every):
            state.method = self.method.state_dict()
            state.optimiser = _optimiser_tensors(optimisers)
            self.checkpoint.write(state)
            self.last_write = time.perf_counter()


def _groups(player: Player) -> list[dict[str, Any]]:
    """Return Adam's groups: one where all parameters share a step size, one for each parameter where they do not."""
    if not player.rates:
        return [{"params": player.parameters, "rate": 1.0}]
    return [{"params": [p], "rate": rate} for p, rate in zip(player.parameters, player.rates, strict=True)]


def _check_parameters(phase: Phase) -> None:
    """Refuse parameters that a last update made infinite: their loss has not been seen yet."""
    finite = torch.stack([torch.isfinite(p).all() for p in phase.parameters]).all()
    if not bool(finite):
        raise DivergenceError(
            f"Training diverged in phase {phase.name!r}: an update made parameters infinite. Try a smaller lr."
        )


def _optimiser_tensors(optimisers: list[torch.optim.Adam]) -> dict[str, Tensor]:
    """Return Adam's tensors under the names player/parameter/tensor."""
    return {
        f"{player}/{number}/{key}": value
        for player, optimiser in enumerate(optimisers)
        for number, entry in optimiser.state_dict()["state"].items()
        for key, value in entry.items()
    }


def _load_optimisers(optimisers: list[torch.optim.Adam], tensors: dict[str, Tensor]) -> None:
    entries: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimisers]
    for name, tensor in tensors.items():
        player, number, key = name.split("/")
        entries[int(player)].setdefault(int(number), {})[key] = tensor
    for optimiser, state in zip(optimisers, entries, strict=True):
        optimiser.load_state_dict(optimiser.state_dict() | {"state": state})
