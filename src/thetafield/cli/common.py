"""What all commands share: the program itself, and options that several of them take."""

import os
from pathlib import Path
from typing import Annotated

import typer

from thetafield import __version__
from thetafield.errors import OptionError

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


def use_data_dir(folder: Path | None) -> None:
    """Look for datasets in a folder, if one is named."""
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise OptionError(f"{folder} is a file: name the folder in which datasets lie.")
        os.environ["THETAFIELD_DATA"] = str(folder)


def names(text: str | None) -> tuple[str, ...] | None:
    """Return the words of a list with commas between them."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
