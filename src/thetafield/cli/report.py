"""The command that makes tables, figures and pages of stored trials."""

import json
from pathlib import Path
from typing import Annotated

import typer

from thetafield.cli.common import DataDir, Json, app, use_data_dir


@app.command()
def report(
    store: Annotated[
        Path, typer.Argument(help="Folder of stored trials (`thetafield bench SUITE --store STORE`), or a packed one.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder of index.html, tables/ and figures/; out/report by default.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one Markdown document; without --out, nothing else.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of figures that the Markdown document shows.")
    ] = None,
    macro: Annotated[bool, typer.Option("--macro", help="Add tables of the mean over domains.")] = False,
    worst: Annotated[bool, typer.Option("--worst", help="Add tables of the mean over the worst tenth.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make tables (Markdown, LaTeX, CSV), figures and one self-contained page of the trials in STORE.

    Nothing is trained, and what is missing is said with its reason.

    For example: thetafield report runs/h200 --out out/report --worst

    Or the document of this repository, from its packed runs: thetafield report results/runs.jsonl.xz --markdown
    docs/results.md --figures docs/images/results
    """
    from thetafield.errors import OptionError
    from thetafield.report.store.write import Asked, write_report

    use_data_dir(data_dir)
    if figures is not None and markdown is None:
        raise OptionError("--figures is the folder of the document's figures: name the document too (--markdown FILE).")
    folder = Path("out/report") if out is None and markdown is None else out
    written = write_report(store, Asked(folder, markdown, figures, macro, worst))
    if as_json:
        typer.echo(json.dumps(written.record()))
        return
    without = sum(count for kind, count in written.gaps.items() if kind != "needs")
    typer.echo(
        f"{written.trials:,} trial{'' if written.trials == 1 else 's'}"
        + (f", {without} without a result" if without else "")
        + "."
    )
    for kind, place in (("page", "The page"), ("document", "The document")):
        if kind in written.files:
            typer.echo(f"{place} is {written.files[kind]}")
    for name, reason in written.undrawn.items():
        typer.echo(f"  not drawn: {name}. {reason}")
