"""The command that opens a field as a page in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from thetafield.cli.common import DataDir, app, use_data_dir


@app.command()
def explore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a trial, a comparison or a saved field.")],
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page as one file that needs no server, and leave.")
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table (.csv, .parquet, .arrow) whose rows the page offers.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Samples to show of each training domain; for a trial whose data is at hand."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port on this machine; 0 takes any free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the browser.")] = True,
    data_dir: DataDir = None,
) -> None:
    """Open a page on which you drag z and see the model there: its answers, its θ and charts if it has them, its trust.

    For example: thetafield explore out/two-moons-neurallio-0

    Or as a file to keep or to send: thetafield explore out/two-moons-neurallio-0 --export page.html
    """
    from thetafield.explorer import explorer_page, open_saved
    from thetafield.explorer.server import page_server
    from thetafield.files import write_whole

    use_data_dir(data_dir)
    if export is not None:
        _check_place(export)
    page = explorer_page(open_saved(folder), rows=rows, samples=samples)
    if export is not None:
        write_whole(export, page.encode())
        typer.echo(f"The page is {export} ({len(page.encode()) / 1e6:.1f} MB).")
        return
    server = page_server(page, port)
    address = f"http://{server.server_address[0]}:{server.server_address[1]}/"
    typer.echo(f"The page is at {address}; Ctrl+C ends it.")
    if browser:
        import webbrowser

        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        typer.echo("")
    finally:
        server.server_close()


def _check_place(path: Path) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    from thetafield.errors import OptionError
    from thetafield.files import writable_folder

    if path.is_dir():
        raise OptionError(f"{path} is a folder: name a file, such as {path / 'page.html'}.")
    writable_folder(path.parent)
