"""One trial: train a method on a dataset, score it on the unseen domains, keep the result and the field."""

import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thetafield import __version__
from thetafield.data.domains import DomainSet
from thetafield.datasets.base import Dataset, Registered, Task
from thetafield.errors import FormatError, OptionError
from thetafield.evaluation.calibrating import calibrate
from thetafield.evaluation.choosing import NAME as CHOICE
from thetafield.evaluation.choosing import choose, is_chosen
from thetafield.evaluation.laws import field_laws
from thetafield.evaluation.scores import Scores, evaluate
from thetafield.evaluation.selection import NAME as TUNING
from thetafield.evaluation.selection import tune
from thetafield.evaluation.skill import skill
from thetafield.evaluation.warranty import warranty
from thetafield.fields.model import FieldModel
from thetafield.fields.storage import save_model
from thetafield.files import plain, read_json, writable_folder, write_json
from thetafield.methods.base import METHODS
from thetafield.options import checked
from thetafield.ranks import ALONE, Ranks
from thetafield.training.checkpoint import NAME as CHECKPOINT
from thetafield.training.fit import Report
from thetafield.training.recall import Recall
from thetafield.training.train import Trained, device_name, pick_device, train_field


def run_trial(
    dataset: str | Task,
    method: str,
    *,
    seed: int,
    out: Path,
    options: Mapping[str, Any] | None = None,
    dataset_options: Mapping[str, Any] | None = None,
    tune_draws: int = 0,
    tune_folds: int = 1,
    tune_by: str = "score",
    device: str = "auto",
    resume: bool = False,
    checkpoint_every: float = 20.0,
    crowded: bool = False,
    laws: bool = True,
    report: Report | None = None,
    ranks: Ranks = ALONE,
) -> dict[str, Any]:
    """Run one trial into the folder `out` and return its result.

    `out` receives every draw of tuning (`tuning.json`), every candidate of what a method lets its training domains
    choose (`choice.json`) and the checkpoint while training, then the saved field
    (`field/`), the losses (`history.json`) and, last, `result.json`: where that file
    exists, the trial is complete. Of several ranks, which all call this, the first one writes all that and scores the
    field; the others return nothing, {}, once the field is trained.

    Args:
        dataset: Registry name of the dataset, or a task such as a person's own table.
        method: Registry name of the method.
        seed: Root seed of the data, the draws of tuning, the start, the batches and the noise.
        out: Folder of the trial.
        options: The method's options.
        dataset_options: The registered dataset's options.
        tune_draws: Settings to draw and to judge on held-out training domains before the trial itself.
        tune_folds: How many times training domains are held out for it.
        tune_by: Which of their errors counts: "score" (every sample) or "macro" (every domain).
        device: auto, cpu or cuda.
        resume: Go on with a stopped trial, or return the result of a finished one; otherwise either is refused.
        checkpoint_every: Least seconds between two checkpoints.
        crowded: Whether others may use up the memory beside it: then a setting that found none is not lost for that.
        laws: Whether the laws of a transport are measured, which takes seconds.
        report: Called after every epoch.
        ranks: Who trains together; they need not have joined.
    """
    out, started = Path(out), time.perf_counter()
    METHODS[method].check_ranks(ranks)
    full = checked(METHODS[method], options or {}, method)
    if ranks.several and tune_draws:
        raise OptionError("Tuning runs on one rank: tune without torchrun, then give the settings it found with --set.")
    if ranks.several and METHODS[method].choices and full["select"]:
        raise OptionError(
            f"{METHODS[method].title} chooses its options on one rank: train once without torchrun on a part of the "
            "domains, then give what it chose with --set, and --set select=false."
        )
    if not isinstance(dataset, str) and dataset_options:
        raise OptionError("Options of a dataset (--data-set) are for registered datasets, not for a table of your own.")
    task = Registered(dataset, dataset_options or {}) if isinstance(dataset, str) else dataset
    fixed = {name: full[name] for name in options or {}}
    settings = {
        "dataset": task.name,
        "method": method,
        "seed": seed,
        "options": plain(full),
        "dataset_options": plain(task.options),
        "tune": tune_draws,
        "tune_folds": tune_folds,
        "tune_by": tune_by,
    }
    finished = _earlier(out, settings, fixed, resume)
    if finished is not None:
        return finished
    place = ranks.device(pick_device(device))
    ranks.join(place)
    data = ranks.in_turn(lambda: task.build(seed))
    METHODS[method].check_needs(data.train, data.ordered, task.name)
    if ranks.first:
        writable_folder(out)

    def train(
        domains: DomainSet,
        *,
        options: Mapping[str, Any],
        report: Report | None,
        checkpoint: Path | None = None,
        recall: Recall | None = None,
    ) -> Trained:
        return train_field(
            domains,
            method,
            seed=seed,
            options=options,
            predictor=data.predictor,
            predictor_options=data.predictor_options,
            ordered=data.ordered,
            where=task.name,
            standardise=data.standardise,
            device=device,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            report=report,
            recall=recall,
            ranks=ranks,
        )

    where = settings["dataset_options"] | {"dataset": task.name, "device": place.type, "torch": torch.__version__}
    selection = None
    if tune_draws:
        selection = tune(
            data.train,
            method,
            train,
            draws=tune_draws,
            seed=seed,
            fixed=fixed,
            folds=tune_folds,
            kind=data.folds,
            by=tune_by,
            where=where,
            folder=out,
            crowded=crowded,
            report=report,
        )
        full = full | selection.options
        fixed = fixed | selection.options
    choice = None
    if is_chosen(method, full, data.train):
        choice = choose(
            data.train,
            method,
            train,
            seed=seed,
            fixed=fixed,
            kind=data.folds,
            where=where,
            folder=out,
            crowded=crowded,
            report=report,
        )
        full = full | choice.options
    trained = train(data.train, options=full, report=report, checkpoint=out)
    ranks.leave()
    if not ranks.first:
        return {}
    if choice is not None and isinstance(trained.model, FieldModel):
        calibrate(trained.model, choice.observed, data.train)
    # Before the scores: a model that has no answer somewhere is worth looking at.
    save_model(trained.model, out / "field")
    write_json(out / "history.json", trained.history)
    result = settings | {"options": plain(full)} | _scored(trained, data, seed if laws else None)
    result |= {
        "tuning": None if selection is None else selection.record(),
        "choice": None if choice is None else choice.record(),
        "trial_seconds": time.perf_counter() - started,  # of this run: tuning, choice, training and scores
        "device": f"{ranks.count} × {device_name(place)}" if ranks.several else device_name(place),
        "versions": {"thetafield": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
    write_json(out / "result.json", result)
    (out / CHECKPOINT).unlink(missing_ok=True)
    return result


def _scored(trained: Trained, data: Dataset, laws_seed: int | None) -> dict[str, Any]:
    """Return what a trained model is worth on the test domains; without a seed, the laws are left out."""
    started = time.perf_counter()
    unseen = DomainSet.concatenate(list(data.test.values()))
    scores = evaluate(trained.model, unseen)
    eval_seconds = time.perf_counter() - started
    bounds = np.cumsum([0, *(len(group) for group in data.test.values())])
    groups = {
        name: _summary(scores, int(a), int(b), group)
        for (name, group), a, b in zip(data.test.items(), bounds[:-1], bounds[1:], strict=True)
    }
    laws = None
    if laws_seed is not None:
        laws = field_laws(trained.model, next(iter(data.test.values())).z, seed=laws_seed)
    return {
        "metric": scores.metric,
        "score": scores.score,
        "macro": scores.macro,
        "worst_decile": scores.worst_decile,
        "per_domain": scores.listed(),
        "domains": domain_names(data.test),
        "groups": groups,
        "skill": skill(trained.model, unseen).record() if data.skill else None,
        "laws": None if laws is None else asdict(laws),
        "relevance": trained.model.relevance(),
        "trust": warranty(trained.model, unseen, scores).record(),
        "train_seconds": trained.seconds,
        "eval_seconds": eval_seconds,
    }


def domain_names(groups: Mapping[str, DomainSet]) -> list[str]:
    """Return what the test domains are called, each by a name of its own."""
    several = len(groups) > 1
    return [f"{name}/{each}" if several else str(each) for name, group in groups.items() for each in group.ids.tolist()]


def _summary(scores: Scores, start: int, end: int, group: DomainSet) -> dict[str, Any]:
    part = Scores.of(scores.metric, scores.per_domain[start:end], group.sizes.numpy())
    return {"domains": end - start, "score": part.score, "macro": part.macro, "worst_decile": part.worst_decile}


def _earlier(out: Path, settings: dict[str, Any], fixed: Mapping[str, Any], resume: bool) -> dict[str, Any] | None:
    """Return the result of a finished trial in `out`, None where there is work to do, or refuse to overwrite."""
    if out.exists() and not out.is_dir():
        raise FormatError(f"{out} is a file: name a folder for the trial.")
    path = out / "result.json"
    if path.exists():
        if not resume:
            raise FormatError(f"{out} already holds a finished trial: choose another folder, or --resume to keep it.")
        try:
            result = read_json(path)
        except ValueError:
            result = None
        if not isinstance(result, dict):
            raise FormatError(f"{path} is damaged: delete it to run the trial again.")
        for key, value in settings.items():
            stored = result.get(key)
            chosen = settings["tune"] or result.get("choice")
            if key == "options" and chosen and isinstance(stored, dict):  # the data chose all but the fixed
                value = stored | plain(fixed)
            if stored != value:
                raise FormatError(
                    f"{out} holds another trial ({key} {stored!r}, not {value!r}): choose another folder."
                )
        return result
    if not resume and any((out / name).exists() for name in (CHECKPOINT, TUNING, CHOICE)):
        raise FormatError(f"{out} holds a stopped trial: add --resume to go on with it, or choose another folder.")
    return None
