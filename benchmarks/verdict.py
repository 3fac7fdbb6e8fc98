"""Is the verdict of `compare` right? On real datasets, against domains that the comparison never saw.

For each dataset and kind of folds, domains are held out by that kind from all of them, the comparison runs on the rest,
and then every candidate that took part in it is trained on the rest, on all of their rows, as it was compared, and
scored on the domains held out. The verdict is right where its method is the best there, or within noise of it: the
interval of the paired difference holds zero. Who had no place in the budget is told by case (`absent`), and in how many
cases nobody was left out (`whole`).

Run: python benchmarks/verdict.py --store out/verdict --budget 10 --out results/cpu/verdict.json
On a machine with many cores, eight cases at a time with two cores each: … --at-once 8
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thetafield.bench.engine import Conditions, run_suite
from thetafield.bench.local import LocalWorkers, default_jobs
from thetafield.bench.store import Store
from thetafield.bench.suite import Suite
from thetafield.compare import compare
from thetafield.compare.budget import Allotment
from thetafield.compare.jobs import FoldTrial
from thetafield.compare.population import StoredPopulation
from thetafield.compare.run import CANDIDATES
from thetafield.data.domains import DomainSet
from thetafield.data.folds import domain_folds
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.evaluation.pairs import Paired
from thetafield.files import write_json
from thetafield.report.suite_progress import suite_display
from thetafield.training.train import pick_device

PLACES = ("eurosat", "arxiv-titles", "weather-aus", "atmosphere", "camels", "pedestrians", "metr-la", "tpt48")
TIMES = ("elec2", "housing")
CORES = 2  # of a case, of those that run side by side
CASES = [(name, kind) for name in PLACES for kind in ("random", "blocked", "edge")] + [(name, "time") for name in TIMES]


@dataclass(frozen=True)
class HeldOut:
    """All domains of a dataset of which some are never shown: the last word about a verdict.

    Args:
        population: All domains, on the disk.
        kept: Positions of the domains that the comparison has seen.
        kind: The kind of folds by which the others were held out.
    """

    population: StoredPopulation
    kept: tuple[int, ...]
    kind: str
    number: int = 0  # one fold, scored on what it holds out

    @property
    def name(self) -> str:
        """How results call it."""
        return self.population.name

    @property
    def options(self) -> dict[str, Any]:
        """All that determines it."""
        return {"population": self.population.options, "kept": list(self.kept), "kind": self.kind}

    def build(self, seed: int) -> Dataset:
        """Return the seen domains for training and the others for the test."""
        return self.population.divided(np.array(self.kept), self.kind)


def main() -> None:
    """Run the cases that the store lacks and say how many verdicts were right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--store", type=Path, required=True, help="Folder of the work; what is there is not run again.")
    parser.add_argument("--budget", type=float, default=10.0, help="Minutes of each comparison.")
    parser.add_argument("--only", nargs="*", default=[], help="Datasets, or cases such as camels/edge.")
    parser.add_argument("--methods", help="Names with commas between; those of compare by default.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--at-once", type=int, default=1, help="Cases side by side, each on two cores of its own.")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="File of all cases; those that are there are not run again.")
    arguments = parser.parse_args()
    for word in arguments.only:
        if not any(word in (name, f"{name}/{kind}") for name, kind in CASES):
            parser.error(f"--only has no {word!r}: give datasets, or cases such as camels/edge, of {_known()}.")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    wanted = [
        (name, kind) for name, kind in CASES if not arguments.only or {name, f"{name}/{kind}"} & {*arguments.only}
    ]
    told = json.loads(arguments.out.read_text())["found"] if arguments.out and arguments.out.exists() else []
    found = {(case["dataset"], case["kind"]): case for case in told}
    for case in told:
        if differs := _difference(case, arguments):
            parser.error(f"{arguments.out} was made with {differs}: give the same arguments, or another --out.")
    failed: list[str] = []
    if arguments.at_once > 1:
        missing = [
            f"{name}/{kind}"
            for name, kind in wanted
            if (name, kind) not in found and not (arguments.store / f"{name}-{kind}" / "case.json").exists()
        ]
        if missing and pick_device(arguments.device).type != "cpu":
            parser.error("--at-once is for cores, each case with its own: give --device cpu.")
        failed = _side_by_side(missing, arguments.at_once)
    for name, kind in wanted:
        place = arguments.store / f"{name}-{kind}"
        done = place / "case.json"
        if f"{name}/{kind}" in failed:
            continue
        if not done.exists() and (name, kind) not in found:
            print(f"{name}, {kind}", file=sys.stderr, flush=True)
            write_json(done, _case(name, kind, place, arguments))
        said = json.loads(done.read_text()) if done.exists() else found[name, kind]
        if differs := _difference(said, arguments):
            parser.error(f"{done} was made with {differs}: give the same arguments, or another --store.")
        found[name, kind] = said
        print(
            f"{name} {kind}: {said['verdict']}, best {said['best']}, right {said['right']}", file=sys.stderr, flush=True
        )
        if arguments.out:
            write_json(arguments.out, _summary(found))
    summary = _summary(found)
    print(json.dumps({"right": summary["right"], "cases": summary["cases"], "share": summary["share"]}))
    if failed:
        raise SystemExit(f"{', '.join(failed)} failed, as told above; the same command tries again.")


def _side_by_side(cases: list[str], count: int) -> list[str]:
    """Run cases as programs of their own, each bound to two cores that no other has; return those that failed."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < CORES * count:
        raise SystemExit(f"--at-once {count} takes {CORES * count} cores, but there are {len(cores)}.")
    free = [set(cores[CORES * place : CORES * (place + 1)]) for place in range(count)]
    words = sys.argv
    for option in ("--only", "--at-once", "--out"):  # who waits here writes the file
        words = _without(words, option)
    running: list[tuple[subprocess.Popen[bytes], set[int], str]] = []
    failed = []
    try:
        while cases or running:
            for child, own, case in [each for each in running if each[0].poll() is not None]:
                running.remove((child, own, case))
                free.append(own)
                failed += [case] if child.returncode else []
            while cases and free:
                own = free.pop()
                case = cases.pop(0)
                child = subprocess.Popen([sys.executable, *words, "--at-once", "1", "--only", case])
                os.sched_setaffinity(child.pid, own)
                running.append((child, own, case))
            time.sleep(0.5)
    finally:
        for child, _, _ in running:
            child.terminate()
    return failed


def _summary(found: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    """Return all cases that are known, those of earlier runs among them."""
    cases = [found[case] for case in CASES if case in found]
    right = sum(case["right"] for case in cases)
    return {
        "command": "python " + " ".join(_without(sys.argv, "--only")),
        "right": right,
        "cases": len(cases),
        "share": right / max(1, len(cases)),
        "whole": sum(not case["absent"] for case in cases),
        "missing": [f"{name}/{kind}" for name, kind in CASES if (name, kind) not in found],
        "found": cases,
    }


def _without(words: list[str], option: str) -> list[str]:
    """Return a command without one of its options and what belongs to it."""
    words = [word for word in words if not word.startswith(f"{option}=")]
    if option not in words:
        return words
    start = words.index(option)
    end = next((i for i in range(start + 1, len(words)) if words[i].startswith("--")), len(words))
    return words[:start] + words[end:]


def _known() -> str:
    return ", ".join(dict.fromkeys(name for name, _ in CASES))


def _methods(arguments: argparse.Namespace) -> list[str]:
    return list(CANDIDATES) if arguments.methods is None else arguments.methods.split(",")


def _difference(case: dict[str, Any], arguments: argparse.Namespace) -> str | None:
    """Return how a stored case was made, where that is not how these arguments would make it."""
    if {*case["methods"]} != {*_methods(arguments)}:
        return f"--methods {','.join(case['methods'])}"
    for name in ("seed", "budget"):
        if case[name] != getattr(arguments, name):
            return f"--{name} {case[name]:g}"
    return None


def _case(name: str, kind: str, place: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the verdict of one dataset and kind of folds is worth."""
    code = _commit()
    data = DATASETS[name](arguments.seed)
    whole = DomainSet.concatenate([data.train, *data.test.values()])
    if whole.on_disk:
        whole = whole.select(np.arange(len(whole)))
    how = {
        "predictor": data.predictor,
        "predictor_options": data.predictor_options,
        "ordered": data.ordered,
        "standardise": data.standardise,
    }
    [(kept, held)] = domain_folds(whole, 1, arguments.seed, kind)
    result = compare(
        whole.select(kept),
        place / "compare",
        folds=kind,
        budget=arguments.budget,
        seed=arguments.seed,
        jobs=arguments.jobs,
        device=arguments.device,
        name=name,
        display=suite_display,
        methods=_methods(arguments),
        **how,
    )
    task = HeldOut(StoredPopulation.of(whole, place / "data", name, **how), tuple(kept.tolist()), kind)
    trials = [_trial(task, Allotment.from_record(each), arguments.seed) for each in result["plan"]]
    _run(trials, place / "trials", arguments)
    store = Store(place / "trials")
    results = {trial.method: store.result(trial.key) for trial in trials}
    errors = {method: np.array(each["errors"]) for method, each in results.items() if each is not None}
    means = {method: float(values.mean()) for method, values in errors.items()}
    best, chosen = min(means, key=means.__getitem__), result["method"]
    lost = None if chosen not in errors else Paired.of([errors[chosen] - errors[best]])
    return {
        "dataset": name,
        "kind": kind,
        "kept": len(kept),
        "held_out": len(held),
        "verdict": chosen,
        "best": best,
        "right": chosen == best or (lost is not None and lost.within_noise),
        "lost": None if lost is None else vars(lost),
        "metric": result["metric"],
        "held_out_error": means,
        "compared_error": {line["method"]: line["error"] for line in result["leaderboard"]},
        "ties": result["verdict"]["ties"],
        "descriptors_help": result["verdict"]["descriptors_help"],
        "absent": result["absent"],
        "plan": result["plan"],
        "warnings": result["warnings"],
        "seconds": result["seconds"],
        "budget": arguments.budget,
        "seed": arguments.seed,
        "methods": _methods(arguments),
        "device": result["device"],
        "cores": len(os.sched_getaffinity(0)),
        "versions": result["versions"] | {"commit": code},
    }


def _commit() -> str | None:
    """Return which code was measured, where it lies in its repository."""
    words = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def _trial(task: HeldOut, each: Allotment, seed: int) -> FoldTrial:
    """Return a method's trial with the settings that it was compared with."""
    rung = each.rung
    assert rung is not None
    return FoldTrial(task, each.method, each.options, seed, "", each.seconds, tune=rung.draws, tune_folds=rung.folds)


def _run(trials: list[FoldTrial], folder: Path, arguments: argparse.Namespace) -> None:
    device = pick_device(arguments.device).type
    plan = Store(folder).plan(trials)
    with suite_display(plan, plan.todo()) as watch:
        run_suite(
            Suite("held out", "held out", "", tuple(trials)),
            trials,
            folder,
            lambda count: LocalWorkers(min(count, arguments.jobs or default_jobs(device)), device),
            conditions=Conditions(),
            watch=watch,
        )


if __name__ == "__main__":
    main()
