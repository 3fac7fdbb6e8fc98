"""Trials in processes of this machine: each has one thread, and one that is killed takes nothing with it."""

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import torch

from thetafield.bench.attempt import Outcome, Task, attempt
from thetafield.errors import ThetafieldError
from thetafield.interrupts import interrupt
from thetafield.memory import keep_freed_memory

JOBS_PER_GPU = 14  # small trials at a time on one GPU: on an H200 and 16 cores, twice as many per second as with 4
TRIALS_PER_WORKER = 25  # then a new process takes over, so that nothing piles up in it
STILLBORN = 3  # processes in a row that end before they begin
PATIENCE = 10.0  # seconds that an interrupted trial has to write its checkpoint
GRACE = 30.0  # seconds beyond its limit in which a trial has to stop by itself


def gpus() -> list[str]:
    """Return the names by which the GPUs of this machine are made visible to a process."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [name.strip() for name in listed.split(",")] if listed else map(str, range(torch.cuda.device_count()))
    return list(names)[: torch.cuda.device_count()]


def default_jobs(device: str) -> int:
    """Return how many trials run at a time: one per core, but only so many on each GPU."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, JOBS_PER_GPU * max(1, len(gpus()))) if device == "cuda" else cores


@dataclass
class Worker:
    """A process that runs one trial after the other.

    Args:
        process: The process.
        pipe: Tasks go out, outcomes come back; the first thing to come is None, once the process is up.
        gpu: The GPU it sees, if it sees one only.
        key: The trial it is at.
        served: Trials it was given.
        up: Whether it has begun.
        limit: Seconds that its trial may take, if there is a limit.
        until: When its process is ended, whatever it does; a trial that hangs outside Python hears no alarm.
    """

    process: SpawnProcess
    pipe: Connection
    gpu: str | None
    key: str | None = None
    served: int = 0
    up: bool = False
    limit: float | None = None
    until: float = math.inf

    def end(self) -> str:
        """End the process at once, if it has not ended by itself, and say how it did."""
        self.pipe.close()
        self.process.join(1.0)
        self.process.kill()
        self.process.join()
        code = self.process.exitcode or 0
        if code == -signal.SIGKILL:
            return "was killed (signal 9), perhaps because memory ran out"
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


class LocalWorkers:
    """Up to `jobs` processes, started when they are needed.

    Args:
        jobs: Most trials at a time.
        device: cpu or cuda; several GPUs are dealt out to the processes in turn.
    """

    attempts = 3  # whose process died before a trial counts as failed

    def __init__(self, jobs: int, device: str) -> None:
        self.jobs, self.device = jobs, device
        self.gpus = gpus() if device == "cuda" else []
        self.workers: list[Worker] = []
        self.stillborn = 0

    @property
    def crowded(self) -> bool:
        """Whether several trials run beside each other."""
        return self.jobs > 1

    def room(self) -> int:
        """Return how many more trials may be started now."""
        return self.jobs - sum(worker.key is not None for worker in self.workers)

    def start(self, task: Task) -> None:
        """Give a trial to an idle process, or to a new one."""
        worker = next((worker for worker in self.workers if worker.key is None), None) or self._hire()
        worker.key, worker.served, worker.limit = task.spec.key, worker.served + 1, task.timeout
        worker.until = math.inf if task.timeout is None else time.monotonic() + task.timeout + GRACE
        with suppress(OSError):  # of a dead process, which `wait` will find
            worker.pipe.send(task)

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """Return the trials that ended, after so many seconds at the latest."""
        ended = []
        by_pipe = {worker.pipe: worker for worker in self.workers}
        for pipe in connection.wait(list(by_pipe), seconds):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                outcome = worker.pipe.recv()
            except (EOFError, OSError):
                self.workers.remove(worker)
                said = worker.end()
                self._count_stillborn(worker, said)
                if worker.key is not None:
                    # The system ends processes in this way when memory runs out.
                    kind = "memory" if worker.process.exitcode == -signal.SIGKILL else "died"
                    ended.append((worker.key, Outcome.failed(kind, f"The process of the trial {said}.")))
                continue
            if outcome is None:
                worker.up, self.stillborn = True, 0
                continue
            assert worker.key is not None
            ended.append((worker.key, outcome))
            worker.key = None
            # What broke a trial may have broken its process, as an error on a GPU does.
            if outcome.kind in ("error", "timeout", "memory") or worker.served >= TRIALS_PER_WORKER:
                self.workers.remove(worker)
                worker.end()
        return [*ended, *self._overdue()]

    def thin(self, key: str) -> bool:
        """Return whether other trials run beside the one that ended for lack of memory; if so, half as many may now.

        Of many that end together, which began before there were fewer, only the first one counts.
        """
        beside = self.jobs - self.room()
        if beside and beside < self.jobs:
            self.jobs = max(1, (beside + 1) // 2)
        return beside > 0

    def _overdue(self) -> list[tuple[str, Outcome]]:
        """End the processes of trials that are beyond all limits, and return these."""
        late = [worker for worker in self.workers if worker.key is not None and time.monotonic() > worker.until]
        ended = []
        for worker in late:
            self.workers.remove(worker)
            worker.process.kill()
            worker.end()
            assert worker.key is not None
            said = f"The trial took longer than {worker.limit:g} s and did not stop: its process was ended."
            ended.append((worker.key, Outcome.failed("timeout", said)))
        return ended

    def stop(self, patience: float = PATIENCE) -> None:
        """Let trials write their checkpoints, then end all processes."""
        for worker in self.workers:
            if worker.key is not None and worker.up and worker.process.pid:
                with suppress(ProcessLookupError):
                    os.kill(worker.process.pid, signal.SIGINT)
        until = time.monotonic() + patience
        for worker in self.workers:
            if worker.key is not None and worker.up:
                worker.process.join(max(0.0, until - time.monotonic()))
            worker.process.kill()
            worker.end()
        self.workers = []

    def _hire(self) -> Worker:
        """Start a process on the GPU that the fewest use."""
        used = [worker.gpu for worker in self.workers]
        gpu = min(self.gpus, key=used.count) if self.gpus else None
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        visible = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        # One thread from the first import on: boosted trees and BLAS read it once.
        with _environment({"OMP_NUM_THREADS": "1"} | visible), _deaf():
            process.start()
        theirs.close()
        self.workers.append(Worker(process, ours, gpu))
        return self.workers[-1]

    def _count_stillborn(self, worker: Worker, said: str) -> None:
        self.stillborn += not worker.up
        if self.stillborn >= STILLBORN:
            raise ThetafieldError(f"The processes of trials end before they begin: the last one {said}.")


def _serve(pipe: Connection) -> None:
    """Run the trials that come, until the other end is closed or gone."""
    os.setpgrp()  # Ctrl-C is for the parent, which then interrupts its processes once
    os.dup2(2, 1)  # standard output belongs to the parent
    threading.Thread(target=_follow_parent, daemon=True).start()
    keep_freed_memory()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        # Some batch systems end every process of a job by SIGTERM: here too it means to write a checkpoint and leave.
        signal.signal(signal.SIGTERM, interrupt)
        pipe.send(None)
        while True:
            pipe.send(attempt(pipe.recv()))
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _follow_parent() -> None:
    """End with the parent, also where that one is killed: nobody may write into a store after its lock is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """Let processes that are started inside hear Ctrl-C no sooner than they ask for it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
