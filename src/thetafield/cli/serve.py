"""The command that serves a field over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from thetafield.cli.common import Device, app


@app.command()
def serve(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A saved field, or the folder of a trial or a comparison: `thetafield train` or `compare` makes it.",
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every one.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    name: Annotated[str | None, typer.Option(help="Name of the model in paths; the folder's by default.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token that clients send as a bearer token.")
    ] = None,
    max_body: Annotated[float, typer.Option(min=0.001, metavar="MB", help="Largest body of a request.")] = 16.0,
    max_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Most rows of a request.")] = 10_000,
    device: Device = "auto",
    access_log: Annotated[bool, typer.Option("--access-log", help="Say every request.")] = False,
) -> None:
    """Answer for the field in DIR over HTTP, by the Open Inference Protocol (v2), with trust in every answer.

    For example: thetafield serve out/two-moons-neurallio-0

    Then: curl localhost:8000/v2/models/two-moons-neurallio-0, which says what to send

    Or for others: thetafield serve out/two-moons-neurallio-0 --host 0.0.0.0 --token-file token.txt
    """
    from thetafield.serving.run import Terms, serve

    terms = Terms(
        host=host,
        port=port,
        name=name,
        token_file=token_file,
        max_body=max_body,
        max_rows=max_rows,
        device=device,
        access_log=access_log,
    )
    serve(folder, terms, say=lambda sentence: typer.echo(f"thetafield: {sentence}", err=True))
