"""Commands that pack a store into one small file, and take it out again."""

from pathlib import Path
from typing import Annotated

import typer

from thetafield.cli.common import app


@app.command()
def pack(
    stores: Annotated[list[Path], typer.Argument(help="Stores of `thetafield bench`; several are put together.")],
    out: Annotated[Path, typer.Option(help="The file, such as runs.jsonl.xz.")],
) -> None:
    """Pack stored trials into one small file: results, gaps and thinned losses, without fields.

    For example, of two machines that shared a suite: thetafield pack runs/a runs/b --out runs.jsonl.xz
    """
    from thetafield.bench.packing import pack as packed

    count = packed(stores, out)
    typer.echo(f"{count} results are in {out} ({out.stat().st_size / 1e6:.1f} MB).")


@app.command()
def unpack(
    file: Annotated[Path, typer.Argument(help="A file that `thetafield pack` wrote.")],
    store: Annotated[Path, typer.Option(help="Folder of the store, which may be new; what is there stays.")],
) -> None:
    """Put packed trials into a store, to report on them or to go on: `thetafield bench` runs only what is missing.

    For example: thetafield unpack results/runs.jsonl.xz --store runs
    """
    from thetafield.bench.packing import unpack as unpacked

    count = unpacked(file, store)
    typer.echo(f"{count} results that were not there are in {store} now: thetafield report {store}")
