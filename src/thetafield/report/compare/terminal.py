"""The leaderboard and the verdict of a comparison on the terminal."""

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thetafield.evaluation.pairs import LEVEL
from thetafield.report.store.table import unit


def print_comparison(result: dict[str, Any], folder: Path, console: Console | None = None) -> None:
    """Print leaderboard, warnings, verdict, and what to do next, of a comparison that lies in `folder`."""
    console = console or Console(highlight=False)
    console.print(leaderboard_table(result))
    told = [f"[dim]{escape(method)}: {escape(reason)}[/]" for method, reason in result["absent"].items()]
    told += [f"[yellow]Note:[/] {escape(warning)}" for warning in result["warnings"]]
    told += ["", f"[bold]{escape(result['verdict']['headline'])}[/]"]
    told += [escape(sentence) for sentence in result["verdict"]["sentences"]]
    where = [
        f"{result['method']}, trained on all domains: thetafield.load_field({str(folder / 'field')!r})",
        f"Look into it: thetafield explore {folder}. Put it to work: thetafield serve {folder}.",
        f"The page is {folder / 'index.html'}, the scores of every domain are in {folder / 'domains.csv'}.",
    ]
    told += ["", *map(escape, where)]
    for line in told:
        console.print(line, soft_wrap=not console.is_terminal)  # a file has lines of any length


def leaderboard_table(result: dict[str, Any]) -> Table:
    """Return the leaderboard, the recommended method in bold."""
    digits = 2 if result["metric"] == "error" else _digits([line["error"] for line in result["leaderboard"]])
    data, folds = result["data"], result["folds"]
    table = Table(
        title=f"Unseen domains of {escape(result['dataset'])}: {unit(result['metric'])}",
        caption=f"{data['judged']} of {data['domains']} domains held out, in {folds['count']} {folds['kind']} folds",
    )
    rows = [
        (
            line["method"] + ("" if line["reads_descriptors"] else " (ignores z)"),
            f"{line['error']:.{digits}f}",
            f"{line['low']:.{digits}f} to {line['high']:.{digits}f}",
            f"{line['worst_decile']:.{digits}f}",
            f"{line['seconds']:.0f}",
        )
        for line in result["leaderboard"]
    ]
    table.add_column("method", no_wrap=True, vertical="bottom")
    for head in ("mean over\ndomains", f"{LEVEL} %\ninterval", "worst\ndecile", "seconds"):  # room in 80 columns
        table.add_column(head, justify="right", no_wrap=True)
    for line, row in zip(result["leaderboard"], rows, strict=True):
        table.add_row(*row, style="bold" if line["method"] == result["method"] else None)
    return table


def _digits(errors: list[float]) -> int:
    """Return the decimals with which the least error has four digits.

    >>> _digits([78.2238, 91.0]), _digits([0.01234]), _digits([12345.6])
    (2, 5, 0)
    """
    least = min((error for error in errors if error > 0), default=1.0)
    return min(8, max(0, 3 - math.floor(math.log10(least))))
