"""The record of a run as a table on the terminal."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BUSY = 0.5  # share of the cores in use by others from which a measurement is worth little
LETTERS = {"domains": "N", "parameters": "D"}
LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def quantity(value: int | float, unit: str) -> str:
    """Return a cost with three digits in the unit that suits its size.

    >>> quantity(0.01234, "s"), quantity(2.5e9, "B"), quantity(9.7e6, "weights"), quantity(1234.0, "s")
    ('12.3 ms', '2.5 GB', '9.7 M', '1230 s')
    """
    if unit == "s":
        factor, words = next((pair for pair in SECONDS if value >= pair[0]), SECONDS[-1])
    else:
        factor, prefix = next((pair for pair in LARGE if value >= pair[0]), LARGE[-1])
        words = prefix + ("B" if unit == "B" else "")
    return f"{_digits(value / factor)} {words}".rstrip()


def _digits(value: float) -> str:
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if rounded >= 100 else f"{rounded:g}"


def speed_table(record: dict[str, Any]) -> Table:
    """Return all figures with their references and ratios, the exponents, and what was left out."""
    machine = record["machine"]
    table = Table(title=f"Speed on {escape(machine['device'])}", title_justify="left", caption_justify="left")
    table.add_column("what")
    for column in ("ours", "reference", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    stated = False
    for figure in record["figures"]:
        reference, ratio, words = "", "", escape(figure["name"])
        if figure["reference"] is not None:
            mark = "" if figure["reference_measured"] else "*"
            stated = stated or bool(mark)
            reference = quantity(figure["reference"], figure["unit"]) + mark
            ratio = f"[bold]{_digits(figure['ratio'])} ×[/]"
            words += f"\n[dim]against {escape(figure['against'])}[/]"
        table.add_row(words, quantity(figure["value"], figure["unit"]), reference, ratio)
    for name, curve in record["scaling"].items():
        cost = "an epoch" if curve["cost"] == "epoch_seconds" else "a step"
        table.add_row(
            f"growth of {cost} of neurallio with the number of {name}\n"
            f"[dim]fitted from {curve['fitted_from']:,} to {curve['points'][-1][name]:,} {name}[/]",
            f"{LETTERS[name]}^{curve['exponent']:.2f}",
            "",
            "",
        )
    for entry in record["skipped"]:
        table.add_row(f"[dim]{escape(entry['name'])}: {escape(entry['why'])}[/]", "", "", "")
    lines = ["ratio: how many times less than the reference" + "; * stated, not measured in this run" * stated]
    if (machine["load"] or 0) > BUSY * machine["cores"]:
        lines.append(f"The machine was busy (load {machine['load']:.1f} on {machine['cores']} cores): measure again.")
    table.caption = "\n".join(lines)
    return table


def print_speed(record: dict[str, Any], out: Path) -> None:
    """Print the table, and where the files are."""
    console = Console()
    console.print(speed_table(record))
    drawn = f", drawn in {out / 'speed.png'}" if (out / "speed.png").exists() else ""
    console.print(f"The numbers are in {out / 'speed.json'}{drawn}.", soft_wrap=True, highlight=False, markup=False)
