"""A comparison from beginning to end: pilots, a plan, folds, a verdict, and the recommended method on all domains."""

import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from thetafield import __version__
from thetafield.bench.engine import Workers
from thetafield.bench.local import default_jobs
from thetafield.compare import folder as files
from thetafield.compare.board import Layout
from thetafield.compare.budget import BARE, Load, rungs
from thetafield.compare.checks import check_domains, warnings_of
from thetafield.compare.fold import FEWEST_ROWS, fold_count
from thetafield.compare.outcome import Compared, write_outcome
from thetafield.compare.population import Population, StoredPopulation
from thetafield.compare.stages import Display, Planned, Stages, hired, silent
from thetafield.data.domains import DomainSet
from thetafield.data.folds import domain_folds, most_folds
from thetafield.errors import OptionError
from thetafield.files import writable_folder
from thetafield.methods.base import METHODS
from thetafield.options import checked
from thetafield.predictors.base import PREDICTORS
from thetafield.training.train import data_digest, device_name, pick_device

CANDIDATES = ("erm", "erm-d", "nda", "interpolate", "hypernet", "trees", "trees-x", "neurallio")
BUDGET = 10.0  # minutes
CELLS = 6e6  # numbers in the inputs of all samples that a minute is enough for


def compare(
    data: Population | DomainSet,
    out: Path,
    *,
    methods: Sequence[str] = CANDIDATES,
    folds: str = "random",
    budget: float = BUDGET,
    seed: int = 0,
    jobs: int | None = None,
    device: str = "auto",
    name: str = "domains",
    predictor: str = "mlp",
    predictor_options: Mapping[str, Any] | None = None,
    ordered: bool = False,
    standardise: bool = True,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    command: str = "",
    display: Display = silent,
    warn: Callable[[str], None] = lambda sentence: None,
    hire: Callable[[int], Workers] | None = None,
) -> dict[str, Any]:
    """Find out which method generalises to unseen domains, and train it on all of them into `out`.

    Every method is tuned and trained on the domains that each fold keeps and scored on those that it holds out; what
    tuning holds out itself are kept domains, by folds of the same kind. Killed at any moment and called again with the
    same arguments, it goes on with what is finished.

    Args:
        data: A person's own table, or domains.
        out: Folder of the comparison: `result.json`, `domains.csv`, the plan, and the recommended method in `field/`.
        methods: Registry names of the methods to compare.
        folds: Which domains are unseen: "random", "blocked", "edge" or "time".
        budget: Minutes that it may take, about.
        seed: Root seed.
        jobs: Processes at a time; one per core by default.
        device: auto, cpu or cuda.
        name: How results call the domains; a table has a name of its own.
        predictor: Registry name of the predictor, where domains are given.
        predictor_options: Its options.
        ordered: Whether the only descriptor is an order such as time.
        standardise: Whether inputs are standardised, where domains are given.
        options: By method: options that are fixed.
        command: What the person typed, for the record.
        display: Shows progress; silent by default.
        warn: Told what looks too good to be true, before anything is trained; the result has it too.
        hire: Returns the workers, given the number of jobs; processes of this machine by default.

    Returns:
        What `result.json` holds.

    Raises:
        DataError: The data cannot be compared on.
        FormatError: The folder belongs to another comparison.
        NeedError: No method could run.
    """
    started = time.perf_counter()
    out, methods = Path(out), tuple(dict.fromkeys(methods))
    given = {method: dict((options or {}).get(method, {})) for method in methods}
    for method, own in given.items():
        full = checked(METHODS[method], own, method)
        own.update({name: full[name] for name in own})
    if not methods:
        raise OptionError("There is no method to compare: name one at least.")
    if not 0 < budget < math.inf:
        raise OptionError(f"The budget is a number of minutes above zero, but got {budget:g}.")
    place = pick_device(device).type
    domains = data if isinstance(data, DomainSet) else data.whole()
    column = None if isinstance(data, DomainSet) else data.options.get("domain")
    check_domains(domains, column)
    count = fold_count(domains.z, folds)
    parts = domain_folds(domains, count, seed, folds)
    writable_folder(out)
    how = {
        "predictor": predictor,
        "predictor_options": dict(predictor_options or {}),
        "ordered": ordered,
        "standardise": standardise,
    }
    about = {
        "data": name if isinstance(data, DomainSet) else data.name,
        "roles": how if isinstance(data, DomainSet) else data.options,
        "digest": data_digest(domains),
        "methods": list(methods),
        "options": given,
        "folds": folds,
        "budget": budget,
        "seed": seed,
        "device": place,
    }
    files.claim(out, about)
    earlier = files.finished(out)
    if earlier is not None:
        return earlier
    doubtful = warnings_of(domains, seed)
    for sentence in doubtful:  # before anybody waits for a result that cannot be believed
        warn(sentence)
    if isinstance(data, DomainSet):
        data = StoredPopulation.of(domains, out / files.DATA, name, predictor, predictor_options, ordered, standardise)
    reading = time.perf_counter() - started
    every = math.ceil(domains.x.numel() / (CELLS * budget))
    run = Stages(
        population=data,
        out=out,
        kind=folds,
        count=count,
        seed=seed,
        every=every,
        command=command,
        display=display,
        hire=hire or partial(hired, jobs, place),
    )
    resumed = (out / files.PLAN).exists()
    fewest = min((kept for kept, _ in parts), key=len)
    load = Load(
        domains=len(fewest),
        kind=folds,
        folds=most_folds(domains.z[fewest], folds),
        seed=seed,
        reading=reading,
        cells=domains.x[0].numel(),
        backbone=_has_backbone(predictor, predictor_options or {}, domains),
    )
    plan = run.planned(methods, given, load, 60 * budget, jobs or default_jobs(place), started)
    layout = Layout([held for _, held in parts], domains.sizes.numpy())
    board, absent, ran = run.folds(plan, layout, started + 60 * budget)
    refit, saved = run.refit(board, plan)
    files.keep_field(saved, out)
    seconds = time.perf_counter() - started
    return write_outcome(
        out,
        Compared(
            name=data.name,
            dataset_options=data.options | ({"holdout": None} if "path" in data.options else {}),
            domains=domains,
            parts=[parts[number] for number in ran],
            kind=folds,
            seed=seed,
            board=board,
            absent=absent,
            allotments=plan.allotments,
            refit=refit,
            warnings=[
                *doubtful,
                *_about_rows(every, domains, budget),
                *_about_folds(len(ran), count),
                *_about_time(plan, load, given, seconds, budget, resumed),
            ],
            seconds=seconds,
            budget=budget,
            command=command,
            device=device_name(torch.device(place)),
            versions={"thetafield": __version__, "torch": torch.__version__, "python": platform.python_version()},
        ),
    )


def _has_backbone(predictor: str, options: Mapping[str, Any], domains: DomainSet) -> bool:
    """Return whether the domains share a part of the predictor."""
    built = PREDICTORS[predictor](tuple(domains.x.shape[1:]), domains.num_outputs, **options)
    return not isinstance(built.backbone, nn.Identity)


def _about_rows(every: int, domains: DomainSet, budget: float) -> list[str]:
    """Return what a person should know where not all rows were compared on."""
    if every == 1:
        return []
    return [
        f"The table is large for {budget:g} min: methods were compared on one in {every} rows of each domain with more "
        f"than {FEWEST_ROWS}, and the recommended one was then trained on all {len(domains.x):,}; give about --budget "
        f"{math.ceil(domains.x.numel() / CELLS)} to compare on all of them."
    ]


def _about_folds(ran: int, count: int) -> list[str]:
    """Return what a person should know where the time was over before all folds were run."""
    if ran == count:
        return []
    return [
        f"The time was over after {ran} of {count} folds, and the verdict rests on the domains that these held out: "
        "the machine has become slower than when the plan was made. Give a larger --budget and another --out for all."
    ]


def _about_time(
    plan: Planned,
    load: Load,
    given: Mapping[str, Mapping[str, Any]],
    seconds: float,
    budget: float,
    resumed: bool,
) -> list[str]:
    """Return what a person should know about the budget."""
    fullest = {each.method: rungs(each.method, load, given[each.method])[0] for each in plan.allotments}
    # Some have nothing to tune, whatever the budget.
    tunable = [method for method, rung in fullest.items() if rung.draws or rung.depth != "none"]
    untuned = [each.method for each in plan.allotments if not each.tuned and each.method in tunable]
    short = [each.method for each in plan.allotments if each.rung is not None and each.rung.share < 1]
    found = []
    if untuned:
        ran = "it ran with its defaults" if len(untuned) == 1 else "they ran with their defaults"
        found.append(f"The budget was too small to tune {', '.join(untuned)}: {ran}.")
    bare = [each.method for each in plan.allotments if each.rung is not None and each.rung.depth in BARE]
    if bare:
        found.append(f"The budget was too small for more than the base of {', '.join(bare)}, which the data chose.")
    if short:
        found.append(f"The budget was too small for the full length of training of {', '.join(short)}.")
    if seconds > 66 * budget and not resumed:
        found.append(f"The budget of {budget:g} min was exceeded: it took {seconds / 60:.1f} min.")
    return found
