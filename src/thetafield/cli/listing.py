"""Commands that show what there is, and fetch what is missing."""

import json
from typing import Annotated

import typer

from thetafield.cli.common import DataDir, Json, app, use_data_dir


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

    use_data_dir(data_dir)
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

    use_data_dir(data_dir)
    fetched = fetch_dataset(dataset)
    typer.echo("\n".join(fetched) if fetched else f"All files of {dataset} are here already.")
