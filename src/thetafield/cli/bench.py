"""The command that runs a suite of trials into a store."""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thetafield.cli.common import DataDir, Device, Json, app, use_data_dir
from thetafield.interrupts import interruptible

if TYPE_CHECKING:
    from thetafield.bench.engine import Workers
    from thetafield.bench.job import Job
    from thetafield.bench.plan import Plan
    from thetafield.bench.suite import Suite


@app.command()
def bench(
    suite: Annotated[
        str,
        typer.Argument(
            help="A suite of the package (paper-table1, real, time, ablation, imperfection, robust, laws, convergence, "
            "sensitivity, scaling, runtime, smoke), or the path of your own .toml."
        ),
    ],
    store: Annotated[Path, typer.Option(help="Folder of the results; what is there already is not run again.")],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Only trials such as neurallio, dataset=two-moons, seed=0, group=tuned, method='neurallio*', key=1f*. "
            "May be given several times: patterns of one field widen each other, those of several fields narrow.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Run N trials at most.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what there is and what is missing; run nothing.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run trials that failed once more.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Trials at a time: what the suite says, or else one per core or a few on each GPU.",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on Ray: local, auto (the cluster this machine is in) or HOST:PORT."),
    ] = None,
    cpus_per_trial: Annotated[float, typer.Option(min=0.1, help="Ray: cores of a trial.")] = 1.0,
    gpus_per_trial: Annotated[
        float | None, typer.Option(min=0, help="Ray: share of a GPU for a trial; a small one by default.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.1, metavar="SECONDS", help="Longest time of a trial.")] = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Least seconds between two checkpoints.")] = 20.0,
    device: Device = "auto",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Run the trials of SUITE that the store lacks: stop it at any time, give the same command again, and it goes on.

    For example: thetafield bench smoke --store out/smoke

    Or one method of a table, two seeds: thetafield bench paper-table1 --store s --only erm --only seed=0 --only seed=1

    Or on a cluster: thetafield bench paper-table1 --store /shared/s --ray auto --gpus-per-trial 0.25
    """
    from thetafield.bench.cluster import ClusterLostError
    from thetafield.bench.engine import Conditions, run_suite
    from thetafield.bench.plan import matching, once
    from thetafield.bench.store import Store
    from thetafield.bench.suite import load_suite
    from thetafield.datasets.root import named_root
    from thetafield.report.suite_progress import suite_display
    from thetafield.training.train import check_device_name

    use_data_dir(data_dir)
    whole = load_suite(suite)
    trials = once(matching(whole.trials, only) if only else whole.trials)
    check_device_name(device)  # which is right or wrong even where nothing is left to run
    held = Store(store)
    held.refuse_namesake(whole)
    plan = held.plan(trials)
    todo = plan.todo(retry, limit)
    if dry_run:
        _show_plan(whole, plan, todo, as_json)
        return
    conditions = Conditions(
        threads=max(1, int(cpus_per_trial)) if ray else 1,
        timeout=timeout,
        checkpoint_every=checkpoint_every,
        data_root=None if (root := named_root()) is None else str(root.absolute()),  # a cluster has another environment
    )
    started = time.perf_counter()

    def hire(count: int) -> "Workers":
        return _workers(count, device, jobs, whole.jobs, ray, cpus_per_trial, gpus_per_trial)

    try:
        with interruptible(), suite_display(plan, todo) as watch:
            after = run_suite(whole, trials, store, hire, conditions=conditions, retry=retry, limit=limit, watch=watch)
    except KeyboardInterrupt:
        typer.echo(f"thetafield: stopped; {store} keeps what was done, and the same command goes on.", err=True)
        raise typer.Exit(130) from None
    except ClusterLostError as error:
        typer.echo(f"thetafield: {error}", err=True)
        os._exit(2)  # on an orderly way out, the threads of a Ray that has lost its head crash
    _show_end(whole, store, plan, after, time.perf_counter() - started, as_json)
    if after.counts()["failed"]:
        raise typer.Exit(1)


def _workers(
    count: int, device: str, jobs: int | None, usual: int | None, ray: str | None, cpus: float, gpus: float | None
) -> "Workers":
    """Return processes of this machine, or of a cluster, for `count` trials; `usual` is how many the suite is for."""
    from thetafield.bench.cluster import RayWorkers
    from thetafield.bench.local import LocalWorkers, default_jobs
    from thetafield.errors import OptionError
    from thetafield.training.train import pick_device

    if ray is not None:
        if not ray:
            raise OptionError("--ray expects local, auto or HOST:PORT, but got nothing.")
        if jobs is not None:
            raise OptionError("--jobs is for this machine: a cluster runs as many trials as --cpus-per-trial allows.")
        return RayWorkers(ray, device, cpus, gpus, usual)
    place = pick_device(device).type
    return LocalWorkers(min(count, jobs or usual or default_jobs(place)), place)


def _show_plan(suite: "Suite", plan: "Plan", todo: "list[Job]", as_json: bool) -> None:
    from rich.console import Console

    from thetafield.report.suite_progress import standing_table

    states = {spec.key: plan.state(spec) for spec in plan.trials}
    counts = plan.counts()
    if as_json:
        trials = [{"key": s.key, "state": states[s.key], "spec": s.record, "labels": s.labels} for s in plan.trials]
        typer.echo(json.dumps({"suite": suite.name} | counts | {"todo": len(todo), "plan": trials}))
        return
    console = Console(highlight=False)
    console.print(standing_table(states, plan.trials, console.width))
    again = sum(plan.state(spec) == "data" for spec in todo)
    looked = f", {again} of them to see whether their data are there by now" if again else ""
    typer.echo(f"{suite.title}: {_counted(counts)}; {len(todo)} to run{looked}.")


def _show_end(suite: "Suite", store: Path, before: "Plan", after: "Plan", seconds: float, as_json: bool) -> None:
    from thetafield.bench.store import Store

    counts, kept = after.counts(), Store(store)
    ran = [spec for spec in after.trials if after.state(spec) == "done" and before.state(spec) != "done"]
    lacking: list[dict[str, Any]] = [
        {"key": spec.key, "state": after.state(spec), "command": spec.command, "reason": kept.reason(spec.key)}
        for spec in after.trials
        if after.state(spec) in ("failed", "needs", "data")
    ]
    if as_json:
        content = {"suite": suite.name, "store": str(store)} | counts
        typer.echo(json.dumps(content | {"ran": len(ran), "seconds": seconds, "lacking": lacking}))
        return
    for entry in lacking:
        if entry["state"] == "failed":
            typer.echo(f"{entry['command']}: {entry['reason']}")
    for reason, count in Counter(entry["reason"] for entry in lacking if entry["state"] == "data").items():
        typer.echo(f"{count} trial{'' if count == 1 else 's'} without data: {reason}")
    typer.echo(f"{suite.title}: {_counted(counts)}; {len(ran)} run now in {seconds:.0f} s. The results are in {store}.")


def _counted(counts: dict[str, int]) -> str:
    words = {
        "done": "done",
        "missing": "missing",
        "failed": "failed (--retry runs them again)",
        "needs": "that do not apply",
        "data": "without their data",
    }
    said = [f"{counts[state]} {word}" for state, word in words.items() if counts[state] or state == "done"]
    return f"of {counts['trials']} trial{'' if counts['trials'] == 1 else 's'}, " + ", ".join(said)
