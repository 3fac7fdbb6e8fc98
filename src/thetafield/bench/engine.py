"""The loop: what is missing goes to workers, what comes back goes into the store. It alone writes there."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from thetafield.bench.attempt import Outcome, Task
from thetafield.bench.job import Job
from thetafield.bench.plan import Plan
from thetafield.bench.store import Store
from thetafield.bench.suite import Suite

PAUSE = 1.0  # seconds between two looks at the workers
EventKind = Literal["started", "again", "done", "failed", "needs", "data"]
ENDS: dict[str, EventKind] = {"result": "done", "needs": "needs", "data": "data"}  # all others have failed


@runtime_checkable
class Workers(Protocol):
    """Where trials run."""

    attempts: int
    device: str

    @property
    def crowded(self) -> bool:
        """Whether several trials may share a machine or a GPU."""
        ...

    def room(self) -> int:
        """Return how many more trials may be started now."""
        ...

    def start(self, task: Task) -> None:
        """Start a trial."""
        ...

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """Return the keys of trials that ended with what came of them, after so many seconds at the latest."""
        ...

    def thin(self, key: str) -> bool:
        """Return whether a trial for which memory did not last had to share it; fewer run at a time from now on."""
        ...

    def stop(self) -> None:
        """End all trials that run, after they have kept what they have; a second call does nothing."""
        ...


@dataclass(frozen=True)
class Event:
    """What a display needs to know.

    Args:
        kind: "started", "again" (its worker died, and it will run once more), or how a trial ended.
        spec: The trial.
        outcome: What came of it, where it ended.
    """

    kind: EventKind
    spec: Job
    outcome: Outcome | None = None


Watch = Callable[[Event], None]
Wanted = Callable[[Job], bool]  # asked when a trial would start: what is not wanted any more is left undone


@dataclass(frozen=True)
class Conditions:
    """How trials run, all alike; none of it determines their results.

    Args:
        threads: Threads of torch.
        timeout: Seconds that a trial may take; None sets no limit.
        checkpoint_every: Least seconds between two checkpoints.
        data_root: Where datasets lie; None leaves it to the environment.
    """

    threads: int = 1
    timeout: float | None = None
    checkpoint_every: float = 20.0
    data_root: str | None = None

    def task(self, spec: Job, store: Store, device: str, first: bool, crowded: bool) -> Task:
        """Return a trial under these conditions; what an error left of it is not trusted, what a death left is.

        Args:
            spec: The trial.
            store: Where its work lies.
            device: cpu or cuda.
            first: Whether this bench has not tried it yet.
            crowded: Whether others may use up the memory beside it.
        """
        return Task(
            spec=spec,
            work=store.work(spec.key).absolute(),
            device=device,
            threads=self.threads,
            timeout=self.timeout,
            checkpoint_every=self.checkpoint_every,
            afresh=first and (store.failure(spec.key) or {}).get("kind") == "error",
            crowded=crowded,
            data_root=self.data_root,
        )


def run_suite(
    suite: Suite,
    trials: Sequence[Job],
    folder: Path,
    hire: Callable[[int], Workers],
    *,
    conditions: Conditions = Conditions(),  # noqa: B008  (frozen)
    retry: bool = False,
    limit: int | None = None,
    wanted: Wanted = lambda spec: True,
    watch: Watch = lambda event: None,
) -> Plan:
    """Run what the store lacks of some trials of a suite, and return how they stand in the end.

    Args:
        suite: The suite.
        trials: The trials that are meant, each once.
        folder: The store.
        hire: Returns the workers, given the number of trials to run; called before anything is written.
        conditions: How trials run.
        retry: Whether trials that failed run again.
        limit: Most trials to run.
        wanted: Asked when a trial would start; one that is not wanted any more stays missing.
        watch: Told what happens.

    Raises:
        StoreError: The store cannot be used, or its disk is full; finished trials are safe.
    """
    store = Store(folder)
    todo = store.plan(trials).todo(retry, limit)
    workers = hire(len(todo)) if todo else None
    try:
        with store.room(), store.locked():
            store.add_suite(suite)
            if workers is not None:
                # Another bench may have been at work until now.
                todo = store.plan(trials).todo(retry, limit)
                try:
                    _run(todo, store, suite.name, workers, conditions, wanted, watch)
                finally:
                    workers.stop()  # before the store is let go
            return store.plan(trials)
    finally:
        if workers is not None:
            workers.stop()


def _run(
    todo: Sequence[Job],
    store: Store,
    suite: str,
    workers: Workers,
    conditions: Conditions,
    wanted: Wanted,
    watch: Watch,
) -> None:
    queue, running, attempts = deque(todo), dict[str, Job](), Counter[str]()
    while queue or running:
        while queue and workers.room() > 0:
            spec = queue.popleft()
            if not wanted(spec):
                continue
            running[spec.key] = spec
            # Where memory does not last on the last attempt either, it is the trial that asks for too much.
            crowded = workers.crowded and attempts[spec.key] + 1 < workers.attempts
            first = not attempts[spec.key]
            workers.start(conditions.task(spec, store, workers.device, first, crowded))
            watch(Event("started", spec))
        over = workers.wait(PAUSE)
        for key, outcome in sorted(over, key=lambda ended: ended[1].kind == "full"):  # what finished is stored first
            spec = running.pop(key)
            attempts[key] += 1
            if outcome.kind == "full":
                raise store.full()
            if outcome.kind == "memory" and workers.thin(key):
                attempts[key] -= 1  # it was the others' fault
            if outcome.kind in ("died", "memory") and attempts[key] < workers.attempts:
                queue.append(spec)  # behind the others: what used up the memory may be gone by then
                watch(Event("again", spec, outcome))
                continue
            store.add(spec, suite, outcome, attempts[key])
            watch(Event(ENDS.get(outcome.kind, "failed"), spec, outcome))
