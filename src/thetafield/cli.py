"""The command line. Heavy imports happen inside commands, so that help answers at once."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thetafield import __version__
from thetafield.errors import ThetafieldError

if TYPE_CHECKING:
    from thetafield.datasets.own_table import OwnTable

app = typer.Typer(
    name="thetafield",
    help="One model for every domain, even those nobody has seen.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Seed = Annotated[int, typer.Option(help="Root seed of the data, the start, the batches and the noise.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Where datasets lie; THETAFIELD_DATA or ~/.cache/thetafield/data.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")]


def _version(value: bool) -> None:
    if value:
        typer.echo(f"thetafield {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Learn the parameter field θ(z) of many domains, and get an ordinary model for any descriptor z."""


@app.command("list")
def list_entries(
    kind: Annotated[str, typer.Argument(help="datasets, methods or predictors; all of them by default.")] = "all",
    as_json: Json = False,
) -> None:
    """Show what there is: datasets, methods and predictors, with their needs, references and options."""
    from thetafield.report.catalogue import catalogue, print_catalogue

    content = catalogue(kind)
    if as_json:
        typer.echo(json.dumps(content, indent=2))
    else:
        print_catalogue(content)


data = typer.Typer(help="See which datasets are here, and fetch their files.", no_args_is_help=True)
app.add_typer(data, name="data")


@data.command("list")
def list_data(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say for each dataset whether its files are present, absent (what to get, from where) or damaged."""
    from thetafield.report.holdings import holdings, print_holdings

    _use_data_dir(data_dir)
    entries = holdings()
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
    else:
        print_holdings(entries)


@data.command("fetch")
def fetch_data(
    dataset: Annotated[str, typer.Argument(help="A dataset: `thetafield data list`.")], data_dir: DataDir = None
) -> None:
    """Fetch the files of DATASET from their public addresses, checked against their checksums."""
    from thetafield.report.holdings import fetch_dataset

    _use_data_dir(data_dir)
    fetched = fetch_dataset(dataset)
    typer.echo("\n".join(fetched) if fetched else f"All files of {dataset} are here already.")


def _use_data_dir(folder: Path | None) -> None:
    if folder is not None:
        os.environ["THETAFIELD_DATA"] = str(folder)


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

    Or on all GPUs of a machine: torchrun --nproc-per-node gpu -m thetafield train my.parquet neurallio … --resume
    """
    from thetafield.bench.trial import run_trial
    from thetafield.memory import keep_freed_memory
    from thetafield.options import parse_assignments
    from thetafield.ranks import Ranks
    from thetafield.report.progress import training_display
    from thetafield.report.trial import print_result

    ranks = Ranks.started()
    keep_freed_memory()
    _use_data_dir(data_dir)
    task = _task(dataset, target, domain, descriptors, features, places, classification, holdout)
    name = dataset if isinstance(task, str) else Path(dataset).stem
    folder = out or Path("out") / f"{name}-{method}-{seed}"
    if resume and not folder.exists() and ranks.first:
        typer.echo(f"thetafield: there is nothing in {folder} to resume: starting afresh.", err=True)
    try:
        with training_display(f"{method} on {dataset}") as report:
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
    return OwnTable(
        path=dataset,
        target=target,
        domain=domain,
        descriptors=_names(descriptors) or (),
        features=_names(features),
        places=None if places is None else str(places),
        classification=classification,
        holdout=holdout or "random",
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


@app.command()
def export(
    field: Annotated[Path, typer.Argument(help="Folder of a saved field: `thetafield train` writes OUT/field.")],
    out: Annotated[Path, typer.Option(help="The file: .onnx, or .pt2 for a program of torch.")],
    z: Annotated[
        str | None, typer.Option(metavar="A,B", help="The descriptor: numbers (or dates) with commas between them.")
    ] = None,
    inputs: Annotated[
        str, typer.Option(metavar="TYPE", help="Type of the inputs: float32, float64, float16 or uint8.")
    ] = "float32",
) -> None:
    """Write the model of one descriptor as a file that runs without thetafield, checked against the model.

    For example: thetafield export out/two-moons-neurallio-0/field --z 12,30 --out model.onnx
    """
    from thetafield.fields.export import export_model
    from thetafield.fields.storage import load_model
    from thetafield.files import writable_folder

    writable_folder(out.parent)
    export_model(load_model(field), z, out, inputs)
    typer.echo(f"The model at z = ({z or ''}) is in {out}.")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the page.")] = Path("out/demo"),
    seed: Seed = 0,
    device: Device = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="A few steps only: to see that everything runs.")] = False,
) -> None:
    """Train NeuralLio, ERM, ERM-D and NDA on 2-Moons and write a page that shows what they learned."""
    from thetafield.memory import keep_freed_memory
    from thetafield.report.demo import run_demo

    keep_freed_memory()
    run_demo(out, seed=seed, device=device, quick=quick)


@app.command()
def speed(
    out: Annotated[Path, typer.Option(help="Folder of speed.json and speed.png.")] = Path("out/speed"),
    device: Device = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer turns and smaller sizes: about a minute.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="A,B", help="Sections to measure, such as epoch,domains; all by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how fast everything is, every reference in the same run, and how time grows with N and D.

    Sections: epoch, exponential, capture, training, methods, inference, domains, parameters, memory.
    """
    from thetafield.memory import keep_freed_memory
    from thetafield.speed.run import run_speed
    from thetafield.speed.table import print_speed

    keep_freed_memory()
    record = run_speed(out, device=device, quick=quick, only=_names(only))
    if as_json:
        typer.echo(json.dumps(record))
    else:
        print_speed(record, out)


def main() -> None:
    """Run the program; what is wrong with the input is said in one sentence, with exit code 2."""
    # Before torch is loaded: threads that wait for each other should soon sleep, or a busy machine slows them tenfold.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        app()
    except ThetafieldError as error:
        if os.environ.get("LOCAL_RANK", "0") == "0":  # of the processes that torchrun starts on a host, one speaks
            typer.echo(f"thetafield: {error}", err=True)
        sys.exit(2)
