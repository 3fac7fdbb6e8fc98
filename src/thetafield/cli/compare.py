"""The command that compares methods on a person's own table and says which to use."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from thetafield.cli.common import Device, Json, Seed, app, names
from thetafield.interrupts import interruptible


@app.command()
def compare(
    table: Annotated[Path, typer.Argument(help="Your own table: .csv, .parquet, .arrow or .feather.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    domain: Annotated[str | None, typer.Option(help="The column that names a row's domain.")] = None,
    descriptors: Annotated[
        str | None, typer.Option(metavar="A,B", help="The columns that describe a domain, numbers or dates.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="The input columns; all others by default.")
    ] = None,
    places: Annotated[
        Path | None, typer.Option(help="A second table with the descriptors, one row per domain.")
    ] = None,
    classification: Annotated[
        bool | None, typer.Option("--classification/--regression", help="Labels or numbers; inferred.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Methods to compare: erm, erm-d, nda, interpolate, hypernet, trees, trees-x, neurallio by default.",
        ),
    ] = None,
    folds: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Unseen domains are random ones, whole regions (blocked), outer ones (edge) or later ones (time).",
        ),
    ] = "random",
    budget: Annotated[float, typer.Option(metavar="MINUTES", help="How long it may take, about.")] = 10.0,
    seed: Seed = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes at a time; one per core by default.")
    ] = None,
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder of the comparison; out/TABLE-compare by default.")] = None,
    as_json: Json = False,
) -> None:
    """Say which method generalises to domains of TABLE that nobody has seen, by how much, and how sure that is.

    For example: thetafield compare weather.csv --target rain --domain station --descriptors lat,lon

    Stop it at any time and give the same command again: it goes on.

    The folder gets the recommended method trained on all domains, scores of every domain, and a page.
    """
    from thetafield.compare.run import CANDIDATES
    from thetafield.compare.run import compare as run
    from thetafield.datasets.own_table import OwnTable
    from thetafield.errors import OptionError
    from thetafield.report.compare.terminal import print_comparison
    from thetafield.report.compare.write import write_page
    from thetafield.report.demo import check_extra
    from thetafield.report.suite_progress import suite_display

    if domain is None and descriptors is None:
        raise OptionError(f"Say which column of {table} names a row's domain (--domain), or --descriptors A,B.")
    check_extra()
    own = OwnTable(
        path=str(table.absolute()),
        target=target,
        domain=domain,
        descriptors=names(descriptors) or (),
        features=names(features),
        places=None if places is None else str(places.absolute()),
        classification=classification,
        holdout=None,
    )
    folder = out or Path("out") / f"{table.stem}-compare"
    try:
        with interruptible():
            result = run(
                own,
                folder,
                methods=names(methods) or CANDIDATES,
                folds=folds,
                budget=budget,
                seed=seed,
                jobs=jobs,
                device=device,
                command=shlex.join(["thetafield", *sys.argv[1:]]),
                display=suite_display,
                warn=lambda sentence: typer.echo(f"Note: {sentence}", err=True),
            )
    except KeyboardInterrupt:
        typer.echo(f"thetafield: stopped; {folder} keeps what was done, and the same command goes on.", err=True)
        raise typer.Exit(130) from None
    write_page(folder)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        print_comparison(result, folder)
