"""Trials on a Ray cluster: a worker or a machine that dies costs its trials an attempt, and nothing else."""

import atexit
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from thetafield import __version__
from thetafield.bench.attempt import Outcome, Task, attempt
from thetafield.bench.local import JOBS_PER_GPU, PATIENCE
from thetafield.errors import NeedError, OptionError, ThetafieldError
from thetafield.memory import keep_freed_memory

ANSWER = 15.0  # seconds that a cluster has to answer
COUNTING = 10.0  # seconds between two counts of a cluster's machines; Ray dies of a head that dies during one
SILENCE = 20.0  # seconds without its head, after which it is given up: Ray ends the whole program after a minute


class ClusterLostError(ThetafieldError):
    """A cluster has gone while trials ran on it."""


class RayWorkers:
    """Trials spread over the machines of a Ray cluster, which all have thetafield installed.

    Where a machine sees the store at the same path, a trial that died there goes on elsewhere from its checkpoint;
    otherwise it starts anew. Results come back to this process, which alone writes them.

    Args:
        address: "local" starts Ray on this machine, "auto" finds the cluster it belongs to, else HOST:PORT.
        device: auto, cpu or cuda.
        cpus: Cores of a trial, and threads of torch.
        gpus: Share of a GPU for a trial; None takes a small share where the cluster has GPUs and they are wanted.
        most: Most trials at a time, where a suite says so: 1 where times are measured.

    Raises:
        NeedError: Ray is not installed.
        OptionError: Nothing answers at the address, or no machine there can ever run a trial.
    """

    attempts = 10  # machines come and go
    crowded = True  # by trials of others too

    def __init__(
        self, address: str, device: str, cpus: float = 1.0, gpus: float | None = None, most: int | None = None
    ) -> None:
        if find_spec("ray") is None:
            raise NeedError("--ray needs Ray: pip install 'thetafield[ray]'.")
        if address != "local":
            _check_answer(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # of a Ray that starts here
        self.ray: Any = import_module("ray")
        # Ray tells of dying machines on standard output, which belongs to the result.
        self.quiet = ExitStack()
        self.quiet.enter_context(redirect_stdout(io.StringIO()))
        dashboard = False if address == "local" else None
        terminated = signal.getsignal(signal.SIGTERM)
        try:
            self.ray.init(address=address, include_dashboard=dashboard, log_to_driver=False, logging_level="ERROR")
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, terminated)  # Ray's own handler would end this process in mid-write
        except (OSError, RuntimeError, ValueError) as error:
            self.quiet.close()
            raise OptionError(_refusal(address, str(error))) from None
        host, _, port = self.ray.get_runtime_context().gcs_address.rpartition(":")
        self.head = (host.strip("[]"), int(port))
        total = self.ray.cluster_resources()
        if gpus is None:
            wanted = device == "cuda" or (device == "auto" and total.get("GPU", 0) > 0)
            gpus = 1 / JOBS_PER_GPU if wanted else 0.0
        self.cpus, self.gpus, self.most = cpus, gpus, most
        self.under_way: dict[Any, str] = {}
        self.shares: dict[str, float] = {}  # of a GPU, that each trial had the last time
        self.lost = False
        self.device = "cuda" if gpus else "cpu"
        self.slots, self.counted = self._slots(), time.monotonic()
        if self.slots < 1:
            have = f"{total.get('CPU', 0):g} CPUs and {total.get('GPU', 0):g} GPUs"
            self.stop()
            raise OptionError(
                f"A trial asks for {cpus:g} CPUs and {gpus:g} GPUs, but the cluster at {address} has {have}: ask for "
                "less, or use --device cpu."
            )
        # Ray would run a lost trial again by itself; the engine does, which counts attempts.
        self.attempt = self.ray.remote(num_cpus=cpus, max_retries=0)(_attempt)

    def _slots(self) -> int:
        total = self.ray.cluster_resources()
        slots = total.get("CPU", 0) / self.cpus
        return int(min(slots, total.get("GPU", 0) / self.gpus) if self.gpus else slots)

    def room(self) -> int:
        """Return how many more trials may be handed over: as many again as can run, so that a cluster may grow.

        Raises:
            ClusterLostError: The head of the cluster has not answered for a while.
        """
        self._listen()
        if time.monotonic() - self.counted > COUNTING:
            self.slots, self.counted = self._slots(), time.monotonic()
        room = max(1, 2 * self.slots)
        return (room if self.most is None else min(room, self.most)) - len(self.under_way)

    def start(self, task: Task) -> None:
        """Hand a trial over to Ray."""
        handed = self.attempt.options(num_gpus=self.gpus).remote(task, __version__)
        self.under_way[handed], self.shares[task.spec.key] = task.spec.key, self.gpus

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """Return the trials that ended, after so many seconds at the latest.

        Raises:
            ClusterLostError: The head of the cluster has not answered for a while.
        """
        self._listen()
        over, _ = self.ray.wait(list(self.under_way), timeout=seconds)
        return [(self.under_way.pop(reference), self._outcome(reference)) for reference in over]

    def _outcome(self, reference: Any) -> Outcome:
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except errors.RayTaskError as error:  # before the trial began: thetafield is not there, or another one
            return Outcome.failed("error", f"The machine could not begin the trial: {error.cause}", str(error))
        except errors.RayError as error:
            first = " ".join(str(error).split()).split(". ")[0].rstrip(".")
            return Outcome.failed("died", f"The worker of the trial died: {first}.", str(error))

    def _listen(self) -> None:
        """See that the head of the cluster is there: without it Ray would wait, and then end this process."""
        since = time.monotonic()  # of the first failure: this process itself may have slept before
        while True:
            try:
                socket.create_connection(self.head, timeout=2).close()
                return
            except OSError:
                if time.monotonic() - since > SILENCE:
                    self.lost = True
                    raise ClusterLostError(
                        f"The head of the Ray cluster at {self.head[0]}:{self.head[1]} does not answer any more: see "
                        "that it runs and give the same command again; finished trials are safe."
                    ) from None
                time.sleep(1)

    def thin(self, key: str) -> bool:
        """Ask for twice the share of a GPU that a trial had, for all from now on, and return whether it shared one.

        How many share the memory of a machine without one is for Ray to say, by the cores that a trial asks for.
        """
        share = self.shares[key]
        if not 0 < share < 1:
            return False
        # Of many that end together, which had the same share, only the first one changes it.
        self.gpus = max(self.gpus, min(1.0, 2 * share))
        self.slots, self.counted = self._slots(), time.monotonic()
        return True

    def stop(self, patience: float = PATIENCE) -> None:
        """Let trials write their checkpoints, then leave the cluster."""
        if self.lost:  # nobody can be told, and every call would wait for the head
            self.quiet.close()
            atexit.unregister(self.ray.shutdown)
            return
        references = list(self.under_way)
        self.under_way = {}
        if references:
            for reference in references:
                self.ray.cancel(reference, force=False)
            self.ray.wait(references, num_returns=len(references), timeout=patience)
        self.ray.shutdown()
        self.quiet.close()


def _attempt(task: Task, version: str) -> Outcome:
    """Run a trial in a process of Ray's, which is set up as those of this machine are and has the bench's version."""
    if version != __version__:
        here = f"{socket.gethostname()} has thetafield {__version__}, but the bench {version}"
        return Outcome.failed("error", f"{here}: install the same version on all machines, then --retry.")
    keep_freed_memory()
    return attempt(task)


def _check_answer(address: str) -> None:
    """See whether a cluster answers: Ray itself would go on trying for minutes, and could not be stopped."""
    script = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"
    command = [sys.executable, "-c", script, address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER)
    except subprocess.TimeoutExpired:
        raise OptionError(
            f"No Ray cluster answers at {address} within {ANSWER:g} s: see that `ray status --address {address}` works."
        ) from None
    if done.returncode:
        # What an exception says, without its traceback.
        said = re.split(r"^[\w.]*(?:Error|Exception): ", done.stderr, flags=re.MULTILINE)[-1]
        raise OptionError(_refusal(address, said))


def _refusal(address: str, said: str) -> str:
    if "Could not find any running Ray instance" in said:
        return f"--ray {address} found no Ray on this machine: start one with `ray start --head`, or use --ray local."
    return f"Ray at {address} refuses: {' '.join(said.split()).rstrip('.') or 'it does not say why'}."
