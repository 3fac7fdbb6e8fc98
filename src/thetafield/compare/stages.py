"""The stages of a comparison, each of which runs what its store lacks: pilots, folds, and the last training."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from thetafield.bench.engine import Conditions, Wanted, Watch, Workers, run_suite
from thetafield.bench.job import Job
from thetafield.bench.local import LocalWorkers, default_jobs
from thetafield.bench.plan import Plan
from thetafield.bench.store import Store
from thetafield.bench.suite import Suite
from thetafield.compare import folder as files
from thetafield.compare.board import Layout, Standing, stand
from thetafield.compare.budget import Allotment, Load, allotted, bare, least_cost, thrifty
from thetafield.compare.fold import Fold
from thetafield.compare.jobs import FoldTrial, Pilot
from thetafield.compare.pace import Pace
from thetafield.compare.population import Population
from thetafield.compare.trusting import joined
from thetafield.compare.verdict import recommended
from thetafield.errors import NeedError, OptionError, ThetafieldError
from thetafield.files import write_json

LAST = 15.0  # seconds at the end that belong to the page and to reading
REFITS = 2.0  # about how many folds of one method the last training and an uneven end cost
PILOTS = 0.4  # share of a method's part of the budget after which its pilot is given up: what it tries would not fit
SHORTEST = 5.0  # seconds that a pilot may take at least
FEWEST_FOLDS = 2  # that are run however long they take

Display = Callable[[Plan, list[Job]], AbstractContextManager[Watch]]


def silent(plan: Plan, todo: list[Job]) -> AbstractContextManager[Watch]:
    """Show nothing."""
    return nullcontext(lambda event: None)


def hired(jobs: int | None, device: str, count: int) -> Workers:
    """Return processes of this machine for so many jobs."""
    return LocalWorkers(min(count, jobs or default_jobs(device)), device)


@dataclass(frozen=True)
class Planned:
    """What was decided before the folds ran.

    Args:
        allotments: What each method gets.
        absent: By method: why it takes no part.
    """

    allotments: Sequence[Allotment]
    absent: Mapping[str, str]


@dataclass(frozen=True)
class Stages:
    """What all stages share.

    Args:
        population: All domains.
        out: Folder of the comparison.
        kind: The kind of folds.
        count: Number of folds.
        seed: Root seed.
        every: Of each domain's samples, folds take one in so many.
        command: What the person typed.
        display: Shows progress.
        hire: Returns the workers, given the number of jobs.
    """

    population: Population
    out: Path
    kind: str
    count: int
    seed: int
    every: int
    command: str
    display: Display
    hire: Callable[[int], Workers]

    @property
    def store(self) -> Store:
        """Where finished jobs lie."""
        return Store(self.out / files.TRIALS)

    def run(
        self,
        name: str,
        jobs: Sequence[Job],
        timeout: float | None = None,
        retry: bool = False,
        wanted: Wanted = lambda job: True,
    ) -> None:
        """Run the jobs that the store lacks while they are wanted, and on request those that failed."""
        plan = self.store.plan(jobs)
        todo = plan.todo(retry)
        with self.display(plan, todo) as watch:
            run_suite(
                Suite(name, name, "", tuple(jobs)),
                jobs,
                self.out / files.TRIALS,
                self.hire,
                conditions=Conditions(timeout=timeout),
                retry=retry,
                wanted=wanted,
                watch=watch,
            )

    def planned(
        self,
        methods: Sequence[str],
        given: Mapping[str, Mapping[str, Any]],
        load: Load,
        seconds: float,
        jobs: int,
        started: float,
    ) -> Planned:
        """Return the plan, made once from the pilots and written down: who starts again follows the same one."""
        path = self.out / files.PLAN
        if path.exists():
            stored = files.read(path)
            return Planned([Allotment.from_record(each) for each in stored["allotments"]], stored["absent"])
        first = Fold(self.population, self.kind, self.count, 0, self.every)
        pilots, starts = dict[str, Pilot](), dict[str, Pilot]()
        for method in methods:
            options = {**thrifty(method, load.domains, load.cells), **given[method]}
            pilots[method] = Pilot(first, method, options, self.seed, self.command)
            if bare(method, given[method]) and given[method].get("select", True):
                options = {**thrifty(method, load.domains, load.cells, start=True), **given[method]}
                starts[method] = Pilot(first, method, options, self.seed, self.command, start=True)
        longest = max(SHORTEST, PILOTS * jobs * seconds / len(methods))
        both = [*starts.values(), *pilots.values()]
        self.run("pilot", both, timeout=longest, retry=True)  # a larger budget waits longer
        paces, absent = {}, {}
        for method, pilot in pilots.items():
            result, started_from = self.store.result(pilot.key), self.alone(starts.get(method))
            if result is not None:
                paces[method] = Pace.of(result["seconds"], started_from)
                continue
            if (self.store.failure(pilot.key) or {}).get("kind") != "timeout":
                absent[method] = self.store.reason(pilot.key)
                continue
            if started_from:
                paces[method] = Pace(math.inf, math.inf, started_from)
                continue
            # It takes at least as long as it was waited for.
            fold = least_cost(method, Pace.within(longest), load, given[method])
            least = self.minutes(fold, len(methods), jobs, longest)
            absent[method] = (
                f"It was left out for lack of time: its short trainings alone took longer than their share of "
                f"{longest:.0f} s; give about --budget {least} and another --out."
            )
        if not paces:
            raise NeedError(f"No method can run on these data; {methods[0]}: {absent[methods[0]]}")
        spent = time.perf_counter() - started
        left = max(0.2 * seconds, seconds - min(LAST, 0.1 * seconds) - spent)
        total = left / self.turns(len(paces), jobs)
        allotments, enough = [], 1
        for each in allotted(paces, total, load, given):
            if each.rung is None:
                least = self.minutes(each.seconds, len(paces), jobs, spent)
                enough = max(enough, least)
                absent[each.method] = (
                    f"It was left out for lack of time: its shortest training takes about {each.seconds:.0f} s a fold; "
                    f"give about --budget {least} and another --out."
                )
                continue
            allotments.append(each)
        if not allotments:
            raise OptionError(
                f"The budget of {seconds / 60:g} min is too small for any of these methods: give about --budget "
                f"{enough}."
            )
        write_json(path, {"allotments": [each.record() for each in allotments], "absent": absent})
        return self.planned(methods, given, load, seconds, jobs, started)

    def alone(self, pilot: Pilot | None) -> float:
        """Return the seconds of what a method starts from; 0 where that is not known."""
        result = None if pilot is None else self.store.result(pilot.key)
        return 0.0 if result is None else result["seconds"][0]

    def turns(self, methods: int, jobs: int) -> float:
        """Return how many folds of all methods together come one after another, the last training included."""
        return self.count / min(jobs, self.count * methods) + REFITS * self.every / methods

    def minutes(self, fold: float, methods: int, jobs: int, spent: float) -> int:
        """Return a budget in which a method whose fold takes so many seconds has its share, after those spent."""
        return math.ceil((fold * methods * self.turns(methods, jobs) + max(spent + LAST, 60.0)) / 60)

    def trial(self, each: Allotment, number: int | None) -> FoldTrial:
        """Return the trial of a method on a fold, or on all domains."""
        assert each.rung is not None
        return FoldTrial(
            Fold(self.population, self.kind, self.count, number, 1 if number is None else self.every),
            each.method,
            each.options,
            self.seed,
            self.command,
            each.seconds,
            tune=each.rung.draws,
            tune_folds=each.rung.folds,
        )

    def folds(self, plan: Planned, layout: Layout, until: float) -> tuple[list[Standing], dict[str, str], list[int]]:
        """Run every method on every fold that begins in time.

        Args:
            plan: What each method gets.
            layout: Which domains each fold holds out.
            until: On the clock: after that no further fold begins.

        Returns:
            Methods that ended, the least error first; why others did not; and which folds were run.
        """
        trials = {each.method: [self.trial(each, number) for number in range(self.count)] for each in plan.allotments}
        # Fold by fold, so that a process reads each once; the longest first, so that none is left for the end.
        every = [trial for number in range(self.count) for trial in [own[number] for own in trials.values()]]
        every.sort(key=lambda trial: (trial.fold.number, -(trial.expected or 0.0)))
        known = self.store.states()  # failures too: a fold on which a method failed was run
        begun = {trial.fold.number for trial in every if trial.key in known}

        def wanted(trial: Job) -> bool:
            assert isinstance(trial, FoldTrial)
            number = trial.fold.number
            if number not in begun and len(begun) >= FEWEST_FOLDS and time.perf_counter() > until:
                return False
            begun.add(number)
            return True

        self.run("folds", every, wanted=wanted)
        ran = [number for number in range(self.count) if number in begun]
        layout = Layout([layout.held[number] for number in ran], layout.sizes)
        chosen = {method: [own[number] for number in ran] for method, own in trials.items()}
        found = {method: stand(method, own, self.store, layout) for method, own in chosen.items()}
        absent = dict(plan.absent) | {method: words for method, words in found.items() if isinstance(words, str)}
        board = [each for each in found.values() if isinstance(each, Standing)]
        if not board:
            told = "; ".join(f"{method}: {words}" for method, words in absent.items())
            raise ThetafieldError(f"No method ran to its end. {told}")
        return sorted(board, key=lambda each: each.error), absent, ran

    def refit(self, board: Sequence[Standing], plan: Planned) -> tuple[dict[str, Any], Path]:
        """Train the recommended method on all domains, by the same selection; return its result and its field."""
        winner, _ = recommended(board)
        allotment = next(each for each in plan.allotments if each.method == winner.method)
        trial = replace(self.trial(allotment, None), observed=joined(winner.results))
        self.run("refit", [trial])
        result = self.store.result(trial.key)
        if result is None:
            raise ThetafieldError(
                f"{winner.method} does best on unseen domains, but could not be trained on all: "
                f"{self.store.reason(trial.key)}"
            )
        return result, self.store.folder / "fields" / trial.key
