"""The result of a trial as a few lines on the terminal."""

from pathlib import Path
from typing import Any

import typer

MOST_RELEVANT = 5  # descriptors that are named


def print_result(result: dict[str, Any], folder: Path) -> None:
    """Print scores, groups, time and where the field is, of a trial that lies in `folder`."""
    unit = " %" if result["metric"] == "error" else ""
    typer.echo(f"{result['method']} on {result['dataset']}, seed {result['seed']}: ", nl=False)
    typer.echo(f"{result['metric']} {result['score']:.2f}{unit} over {len(result['per_domain'])} unseen domains")
    for name, group in result["groups"].items():
        typer.echo(f"  {name:<8} {group['score']:.2f}{unit} ({group['domains']} domains)")
    typer.echo(f"  worst decile {result['worst_decile']:.2f}{unit}, {result['train_seconds']:.1f} s of training")
    if result["tuning"]:
        chosen = result["tuning"]["draws"][result["tuning"]["best"]]
        words = ", ".join(f"{name}={value}" for name, value in chosen["options"].items()) or "the defaults"
        held_out = sum(map(len, result["tuning"]["held_out"]))
        typer.echo(f"  tuned on {held_out} held-out training domains: {words}")
    if result["choice"]:
        chosen = result["choice"]["candidates"][result["choice"]["best"]]
        words = ", ".join(f"{name}={value}" for name, value in (chosen["options"] | chosen["dials"]).items())
        typer.echo(f"  chosen on {len(chosen['per_domain'])} held-out training domains: {words}")
    if result["relevance"]:
        ordered = sorted(result["relevance"].items(), key=lambda pair: -pair[1])[:MOST_RELEVANT]
        typer.echo("  what drives the shift: " + ", ".join(f"{name} {share:.2f}" for name, share in ordered))
    if result["trust"]["coverage"] is not None:
        typer.echo(f"  90 % {'sets' if unit else 'intervals'} hold {result['trust']['coverage']:.0%} of the truth")
    typer.echo(f"The field is in {folder / 'field'}: thetafield.load_field({str(folder / 'field')!r})")
