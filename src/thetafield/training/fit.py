"""The loop: phases, epochs, steps. The only owner of optimisers."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor

from thetafield.errors import DivergenceError
from thetafield.methods.base import Method
from thetafield.methods.phase import Phase
from thetafield.streams import seeded
from thetafield.training.checkpoint import Checkpoint, State
from thetafield.training.recall import Recall
from thetafield.training.running import Running
from thetafield.training.spread import Spread


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
# A look at the losses waits for all that is under way on a GPU: so many steps lie between two of them, or so many
# seconds where that is less.
READ_EVERY, PATIENCE = 500, 1.0


def fit(
    method: Method,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    capture: bool = True,
    recall: Recall | None = None,
) -> State:
    """Train a method through its phases and return the final state with its history.

    An epoch is the unit of everything but the step itself: losses are recorded once per epoch, and read from the
    device, checked and checkpointed once per epoch or, where epochs are short and a GPU runs ahead, once per some.
    Every draw is a function of the seed and the step's number, so a run that resumes from a checkpoint goes through
    the same steps as one that was never stopped.

    Where several ranks train (`method.problem.ranks`), all of them call this; the method of the first one is whole in
    the end, and what the others have of it is theirs alone.

    Args:
        method: The method, on its device.
        checkpoint: Where to keep the state; an existing checkpoint is resumed.
        report: Called after every look at the losses.
        capture: Whether steps on a GPU are recorded once and replayed.
        recall: What phases of other trainings on the same problem left behind; a checkpoint does without.

    Raises:
        DivergenceError: A loss term stopped being finite; the last good checkpoint is kept.
    """
    phases = method.phases()
    device = next(method.parameters()).device
    spread = Spread.of(method, phases)
    resumed = checkpoint.read(device, spread) if checkpoint else None
    state = resumed or State()
    spread.check_same((state.phase, state.epoch), device)
    if resumed:
        method.load_state_dict(resumed.method)
    loop = _Loop(method, phases, state, checkpoint, report, capture, spread, recall)
    method.train()
    with seeded(method.problem.seed, "noise"), tensor_cores(), loop.interruptible():
        for number in range(state.phase, len(phases)):
            loop.run_phase(number, resumed if number == state.phase else None)
    spread.unite(method)
    method.eval()
    return state


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Let products of matrices on a GPU run on its tensor cores inside the block: three digits are enough for a step.

    Values that must arrive as they are, such as rows that are picked, never go through a product.
    """
    matmul = torch.backends.cuda.matmul
    before, matmul.fp32_precision = matmul.fp32_precision, "tf32"
    try:
        yield
    finally:
        matmul.fp32_precision = before


class _Loop:
    """The state of a run in motion."""

    def __init__(
        self,
        method: Method,
        phases: list[Phase],
        state: State,
        checkpoint: Checkpoint | None,
        report: Report | None,
        capture: bool,
        spread: Spread,
        recall: Recall | None,
    ) -> None:
        self.method, self.phases, self.state = method, phases, state
        self.spread, self.ranks = spread, spread.ranks
        self.checkpoint, self.report, self.capture = checkpoint, report, capture
        self.recall = recall if checkpoint is None else None
        self.device = next(method.parameters()).device
        self.started = time.perf_counter() - state.seconds
        self.last_write = time.perf_counter()
        self.stopping = self.stopped = False
        self.latest = torch.empty((), dtype=torch.float64, device=self.device)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a first Ctrl-C finish the epoch and write the checkpoint; a second one ends at once.

        Under torchrun every Ctrl-C comes twice, from the terminal and from torchrun, which ends whoever takes too long.
        """
        if self.checkpoint is None or threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            if self.stopping and not self.ranks.several:
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
        most = self._epochs_at_once(phase)
        running = Running(phase, most, self.capture, self.ranks)
        ahead = most if self.ranks.several else 1  # ranks do not agree on the time
        if resumed:
            running.load(resumed.optimiser, resumed.work)
        else:
            phase.begin()
            state.phase, state.epoch, state.best, state.best_loss = number, 0, {}, None
        key = self.recall.key(self.method, phase) if self.recall and phase.recurs is not None else None
        if self.recall and key and self.recall.restore(key, self.method, phase):
            return
        while state.epoch < phase.epochs:
            if self.stopped:
                raise KeyboardInterrupt
            epochs = range(state.epoch, min(state.epoch + ahead, phase.epochs))
            began = time.perf_counter()
            for epoch in epochs:
                running.run_epoch(epoch)
                if phase.keep == "best" and phase.judge is None:
                    self._keep_best(running.loss_of(epoch), running)
            state.epoch = epochs.stop
            loss = self._read(phase, running, epochs)
            if phase.keep == "best" and phase.judge is not None and epochs[0] >= int(phase.judge_from * phase.epochs):
                self._keep_best(self._judged(phase.judge), running)
            self._after(phase, running, loss)
            if not self.ranks.several:
                ahead = max(1, min(most, 2 * ahead, int(ahead * PATIENCE / (time.perf_counter() - began))))
        running.close()
        if phase.keep == "best":
            self.method.load_state_dict(state.best)  # buffers too: running statistics belong to their parameters
            state.best = {}
        phase.finish()
        if self.recall and key:
            self.recall.keep(key, self.method, phase)

    def _epochs_at_once(self, phase: Phase) -> int:
        """Return the most epochs that run before the host looks at them."""
        if self.device.type == "cpu" or phase.judge is not None:
            return 1
        return max(1, READ_EVERY // phase.steps_per_epoch)

    @torch.no_grad()
    def _keep_best(self, loss: Tensor, running: Running) -> None:
        """Keep the parameters if the loss is the lowest so far, without asking the device whether it is."""
        state = self.state
        if state.best_loss is None:
            state.best_loss = torch.full_like(self.latest, math.inf)
            state.best = {name: t.detach().clone() for name, t in self.method.state_dict().items()}
        if loss.device.type == "cpu" and not loss < state.best_loss:  # where asking costs nothing
            return
        best, kept, now = state.best_loss, state.best, self.method.state_dict()
        latest = self.latest.copy_(loss)

        def keep() -> None:
            better = latest < best
            for name, tensor in now.items():
                torch.where(better, tensor, kept[name], out=kept[name])
            torch.where(better, latest, best, out=best)

        running.runner.run("best", keep)

    @torch.no_grad()
    def _judged(self, judge: Callable[[], Tensor]) -> Tensor:
        """Return a loss without dropout, as prediction will see it."""
        self.method.eval()
        value = judge().double()
        self.method.train()
        return torch.where(torch.isfinite(value), value, math.inf)

    def _read(self, phase: Phase, running: Running, epochs: range) -> float:
        """Read the losses of some epochs at once, check them, append their means to the history, return the last."""
        loss = math.nan
        for epoch, steps in running.losses(epochs):
            means: dict[str, list[float]] = {}
            totals: list[float] = []
            for step, player, terms in steps:
                self._check_losses(phase, step, terms)
                for term, value in terms.items():
                    means.setdefault(term, []).append(value)
                if player == 0:
                    totals.append(sum(terms.values()))
            loss = sum(totals) / len(totals)
            terms = {term: sum(each) / len(each) for term, each in means.items()}
            self.state.history.append({"phase": phase.name, "epoch": epoch + 1, "loss": loss} | terms)
        self._check_parameters(phase)
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

    def _after(self, phase: Phase, running: Running, loss: float) -> None:
        state, now = self.state, time.perf_counter()
        state.seconds = now - self.started
        total = sum(p.epochs for p in self.phases)
        done = sum(p.epochs for p in self.phases[: state.phase]) + state.epoch
        if self.report:
            self.report(Progress(phase.name, state.epoch, phase.epochs, done, total, loss))
        if self.checkpoint is None:
            return
        due = self.ranks.first and now - self.last_write >= self.checkpoint.every
        self.stopped, due = self.ranks.agreed([self.stopping, due], self.device)
        if self.stopped or due:
            state.method = self.method.state_dict()
            state.optimiser, state.work = running.tensors(), running.work
            self.checkpoint.write(state, self.spread)
            self.last_write = time.perf_counter()
            # How long a training takes must not depend on how often it is written down.
            self.started += self.last_write - now

    def _check_parameters(self, phase: Phase) -> None:
        """Refuse parameters that a last update made infinite: their loss has not been seen yet."""
        finite = torch.stack([torch.isfinite(p).all() for p in phase.parameters]).all()
        if any(self.ranks.agreed([not finite], self.device)):
            raise DivergenceError(
                f"Training diverged in phase {phase.name!r}: an update made parameters infinite. Try a smaller lr."
            )
