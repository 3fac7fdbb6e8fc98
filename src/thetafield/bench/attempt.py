"""One attempt at a trial, in a process of its own: whatever happens to it is an outcome, not an exception."""

import errno
import os
import shutil
import signal
import socket
import tempfile
import threading
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch

from thetafield.bench.job import LOOK, Job
from thetafield.datasets.base import DATASETS
from thetafield.datasets.root import AbsentError
from thetafield.datasets.source import source_of
from thetafield.errors import DataError, FormatError, NeedError, ThetafieldError
from thetafield.files import read_json
from thetafield.memory import is_used_up

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room, none for this person, or none for a file of this size
Kind = Literal["result", "needs", "data", "error", "timeout", "died", "memory", "full"]


@dataclass(frozen=True)
class Task:
    """A trial with the conditions under which it runs, which do not determine its result.

    Args:
        spec: The trial, or another job.
        work: Where it works, if that folder can be reached from where it runs.
        device: auto, cpu or cuda.
        threads: Threads of torch.
        timeout: Seconds it may take; None sets no limit.
        checkpoint_every: Least seconds between two checkpoints.
        afresh: Whether what an earlier attempt left is thrown away.
        crowded: Whether others may use up the memory beside it: then a setting that found none is not lost for that.
        data_root: Where datasets lie; None leaves it to the environment.
    """

    spec: Job
    work: Path
    device: str = "auto"
    threads: int = 1
    timeout: float | None = None
    checkpoint_every: float = 20.0
    afresh: bool = False
    crowded: bool = False
    data_root: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt.

    Args:
        kind: "result"; "needs" or "data" where there can be none; "error" or "timeout" where it failed; "died" where
            its process did; "memory" where that of the machine or the GPU was used up; "full" where its disk was.
        content: The result, {"reason"}, or {"sentence", "traceback"}.
        history: The losses of a result.
        look: What figures show of its field; None where it is not kept, or there are no such figures.
        saved: The folder of its field where that is kept, or the files in it where that folder cannot be reached.
    """

    kind: Kind
    content: dict[str, Any]
    history: list[dict[str, Any]] = field(default_factory=list)
    look: dict[str, Any] | None = None
    saved: Path | dict[str, bytes] | None = None

    @classmethod
    def failed(cls, kind: Kind, sentence: str, trace: str = "") -> "Outcome":
        """Return a failure."""
        return cls(kind, {"sentence": sentence, "traceback": trace})

    def write_field(self, folder: Path) -> None:
        """Copy the saved field into an empty folder."""
        files = _files(self.saved) if isinstance(self.saved, Path) else self.saved or {}
        for name, content in files.items():
            (folder / name).write_bytes(content)


class TimeLimit(BaseException):
    """A trial took longer than it may. No plain exception, which somebody on the way might take for an error."""


def attempt(task: Task) -> Outcome:
    """Run a trial, going on from what an earlier attempt at it left; only an interrupt gets out of here."""
    torch.set_num_threads(task.threads)
    if task.data_root is not None:
        os.environ["THETAFIELD_DATA"] = task.data_root
    # A machine that does not see the store works in a folder of its own, and sends back what it found.
    shared = (task.work.parent.parent / "store.json").exists()
    try:
        with tempfile.TemporaryDirectory() as alone:
            folder = _claimed(task.work if shared else Path(alone) / task.work.name, task.afresh)
            with _time_limit(task.timeout):
                outcome = _trial(task, folder)
            if isinstance(outcome.saved, Path) and not shared:
                return replace(outcome, saved=_files(outcome.saved))
            return outcome
    except (Exception, TimeLimit) as error:
        outcome = _failure(error, task)
        if outcome.kind == "full" and not shared:  # not the store's disk, which would end the suite
            where = f"The disk of {tempfile.gettempdir()} on {socket.gethostname()} is full: make room there"
            return Outcome.failed("error", f"{where}, then --retry.", outcome.content["traceback"])
        return outcome


def _trial(task: Task, folder: Path) -> Outcome:
    """Run a trial in a folder; what is left there and does not fit (another device, another torch) is thrown away."""
    spec, how = task.spec, {"device": task.device, "checkpoint_every": task.checkpoint_every, "crowded": task.crowded}
    try:
        result = spec.run(folder, **how)
    except FormatError:
        if not any(folder.iterdir()):
            raise
        shutil.rmtree(folder)
        folder.mkdir()
        result = spec.run(folder, **how)
    saved = folder / "field"
    history = _read(folder / "history.json")
    kept = saved if spec.keep and saved.exists() else None
    return Outcome("result", result, history or [], look=_read(folder / LOOK), saved=kept)


def _failure(error: BaseException, task: Task) -> Outcome:
    """Return what an error means."""
    absent = _absent(error, task.spec.dataset)
    if absent is not None:
        return Outcome("data", {"reason": absent})
    if isinstance(error, NeedError):
        return Outcome("needs", {"reason": str(error)})
    said = str(error) if isinstance(error, ThetafieldError) else f"{type(error).__name__}: {error}".strip()
    sentence, trace = " ".join(said.split()), "".join(traceback.format_exception(error))
    if isinstance(error, TimeLimit):
        return Outcome.failed("timeout", f"The trial took longer than {task.timeout:g} s.", trace)
    if is_full(error):
        return Outcome.failed("full", sentence, trace)
    # Trials that share a GPU or a machine may use up its memory together, so another attempt may find room.
    if is_used_up(error):
        return Outcome.failed("memory", sentence, trace)
    return Outcome.failed("error", sentence, trace)


def _absent(error: BaseException, dataset: str) -> str | None:
    """Return which data are absent, in a sentence, if an error comes from there."""
    if isinstance(error, AbsentError):
        return str(error)
    # A package that a dataset is read with belongs to the data: it may be there the next time.
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, NeedError) and frames[-1].f_globals["__name__"].startswith("thetafield.datasets."):
        return str(error)
    source = source_of(DATASETS[dataset]) if dataset in DATASETS else None
    if source is not None and isinstance(error, DataError | OSError):
        try:
            source.paths()
        except AbsentError as gone:  # after the first look, and before it was read
            return str(gone)
        except DataError:
            return None
    return None


def is_full(error: BaseException) -> bool:
    """Return whether there was no room on a disk."""
    return isinstance(error, OSError) and error.errno in FULL


def _claimed(work: Path, afresh: bool) -> Path:
    """Return a folder for this attempt alone, with what the last one left in it.

    A process that is taken for dead may live on for a while, and write. So an attempt never works where another one
    did: it moves that folder to a name of its own, and what the other still writes goes nowhere.
    """
    if afresh:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    own = work / uuid.uuid4().hex[:12]
    for left in sorted(work.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True):
        if own.exists():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.rename(own)
    own.mkdir(exist_ok=True)
    for partial in own.glob(".*.partial"):  # which the other may have open
        shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
    return own


@contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Raise TimeLimit in the main thread after so many seconds; elsewhere there is no limit."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _read(path: Path) -> Any:
    """Return what a file of JSON holds; None where there is no such file."""
    return read_json(path) if path.exists() else None


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}
