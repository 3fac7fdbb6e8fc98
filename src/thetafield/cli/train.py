"""The command that trains one method on one dataset or table."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thetafield.cli.common import DataDir, Device, Json, Seed, app, names, use_data_dir

if TYPE_CHECKING:
    from thetafield.datasets.own_table import OwnTable


@app.command()
def train(
    dataset: Annotated[
        str, typer.Argument(help="A dataset (`thetafield list datasets`), or your own table: .csv, .parquet, .arrow.")
    ],
    method: Annotated[str, typer.Argument(help="A method: `thetafield list methods`.")],
    target: Annotated[str | None, typer.Option(help="Own table: the column to predict.")] = None,
    domain: Annotated[str | None, typer.Option(help="Own table: the column that names a row's domain.")] = None,
    descriptors: Annotated[
        str | None, typer.Option(metavar="A,B", help="Own table: the columns that describe a domain, numbers or dates.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="Own table: the input columns; all others by default.")
    ] = None,
    places: Annotated[
        Path | None, typer.Option(help="Own table: a second table with the descriptors, one row per domain.")
    ] = None,
    classification: Annotated[
        bool | None, typer.Option("--classification/--regression", help="Own table: labels or numbers; inferred.")
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Own table: domains held out: random (the default), blocked, edge or time."),
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the trial; out/DATASET-METHOD-SEED by default.")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Override an option of the method.")
    ] = None,
    data_assignments: Annotated[
        list[str] | None, typer.Option("--data-set", metavar="NAME=VALUE", help="Override an option of the dataset.")
    ] = None,
    tune: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Draw N settings and keep the one with the least error on held-out training domains.",
        ),
    ] = 0,
    tune_folds: Annotated[int, typer.Option(min=1, help="How many times domains are held out for each setting.")] = 1,
    device: Device = "auto",
    data_dir: DataDir = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Least seconds between two checkpoints.")] = 20.0,
    resume: Annotated[bool, typer.Option(help="Go on with a stopped trial; a finished one is shown again.")] = False,
    as_json: Json = False,
) -> None:
    """Run one trial: train METHOD on DATASET, score it on unseen domains, save the result and the field.

    For example: thetafield train two-moons neurallio --seed 1 --set epochs=300

    Or with the method's settings tuned first: thetafield train two-moons dann --tune 10

    Or on your own table: thetafield train my.parquet neurallio --target y --domain station --descriptors lat,lon

    Or on all GPUs of a machine: torchrun --nproc-per-node gpu -m thetafield train my.parquet neurallio-paper … --resume
    """
    from thetafield.bench.trial import run_trial
    from thetafield.interrupts import interruptible
    from thetafield.memory import keep_freed_memory
    from thetafield.options import parse_assignments
    from thetafield.ranks import Ranks
    from thetafield.report.trial import print_result
    from thetafield.training.display import training_display

    ranks = Ranks.started()
    keep_freed_memory()
    use_data_dir(data_dir)
    task = _task(dataset, target, domain, descriptors, features, places, classification, holdout)
    name = dataset if isinstance(task, str) else Path(dataset).stem
    folder = out or Path("out") / f"{name}-{method}-{seed}"
    if resume and not folder.exists() and ranks.first:
        typer.echo(f"thetafield: there is nothing in {folder} to resume: starting afresh.", err=True)
    try:
        # By SIGTERM torchrun ends the others where one has died: there is nobody to finish an epoch with.
        ended = nullcontext() if ranks.several else interruptible()
        with ended, training_display(f"{method} on {dataset}") as report:
            result = run_trial(
                task,
                method,
                seed=seed,
                out=folder,
                options=parse_assignments(assignments or []),
                dataset_options=parse_assignments(data_assignments or []),
                tune_draws=tune,
                tune_folds=tune_folds,
                device=device,
                resume=resume,
                checkpoint_every=checkpoint_every,
                report=report if ranks.first else None,
                ranks=ranks,
            )
    except KeyboardInterrupt:
        if ranks.first:
            typer.echo(f"thetafield: stopped; {folder} keeps what was done, and --resume goes on from there.", err=True)
        raise typer.Exit(130) from None
    if ranks.first:
        if as_json:
            typer.echo(json.dumps(result))
        else:
            print_result(result, folder)


def _task(
    dataset: str,
    target: str | None,
    domain: str | None,
    descriptors: str | None,
    features: str | None,
    places: Path | None,
    classification: bool | None,
    holdout: str | None,
) -> "str | OwnTable":
    """Return the name of a registered dataset, or a person's own table."""
    from thetafield.data.folds import KINDS
    from thetafield.data.table import is_table_file
    from thetafield.datasets.own_table import OwnTable
    from thetafield.errors import OptionError

    roles = {
        "--target": target,
        "--domain": domain,
        "--descriptors": descriptors,
        "--features": features,
        "--places": places,
        "--classification/--regression": classification,
        "--holdout": holdout,
    }
    if not is_table_file(dataset):
        given = [option for option, value in roles.items() if value is not None]
        if given:
            raise OptionError(f"{given[0]} is for a table of your own (.csv, .parquet, .arrow), but got {dataset!r}.")
        return dataset
    if target is None:
        raise OptionError(f"Say which column of {dataset} to predict: --target COLUMN.")
    if domain is None and descriptors is None:
        raise OptionError(f"Say which column of {dataset} names a row's domain (--domain), or --descriptors A,B.")
    if holdout is not None and holdout not in KINDS:
        raise OptionError(f"--holdout is one of {', '.join(KINDS)}, but got {holdout!r}.")
    return OwnTable(
        path=dataset,
        target=target,
        domain=domain,
        descriptors=names(descriptors) or (),
        features=names(features),
        places=None if places is None else str(places),
        classification=classification,
        holdout=holdout or "random",
    )
