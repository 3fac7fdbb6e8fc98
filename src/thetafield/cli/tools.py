"""Commands beside training: export, demo, speed."""

import json
from pathlib import Path
from typing import Annotated

import typer

from thetafield.cli.common import Device, Json, Seed, app, names


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
    record = run_speed(out, device=device, quick=quick, only=names(only))
    if as_json:
        typer.echo(json.dumps(record))
    else:
        print_speed(record, out)
