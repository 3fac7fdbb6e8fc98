"""Which datasets are here: present, absent with what to get and from where, or damaged."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from thetafield.datasets.base import DATASETS
from thetafield.datasets.fetch import fetch
from thetafield.datasets.root import data_root
from thetafield.datasets.source import source_of, state_of
from thetafield.errors import OptionError

COLOURS = {"made": "green", "present": "green", "absent": "yellow", "damaged": "red"}


def holdings() -> list[dict[str, Any]]:
    """Return the state of every dataset as plain values."""
    entries = []
    for name, build in DATASETS:
        source, state = source_of(build), state_of(build)
        entry: dict[str, Any] = {"name": name, "state": state.word, "detail": state.detail}
        if source is not None:
            entry |= {
                "origin": source.origin,
                "licence": source.licence,
                "bytes": source.size,
                "note": source.note,
                "files": [str(file.place) for file in source.files],
                "fetchable": all(file.urls for file in source.files),
            }
        entries.append(entry)
    return entries


def print_holdings(entries: list[dict[str, Any]]) -> None:
    """Print a line for each dataset, and for absent ones what to download, from where, how large, which licence."""
    console = Console(highlight=False)
    console.print(f"Data root: {data_root()} (THETAFIELD_DATA or --data-dir)", soft_wrap=True, markup=False)
    for entry in sorted(entries, key=lambda entry: list(COLOURS).index(entry["state"])):
        colour = COLOURS[entry["state"]]
        console.print(f"[{colour}]{entry['state']:<8}[/] [bold]{entry['name']}[/]")
        if entry["state"] in ("absent", "damaged"):
            size = f", {entry['bytes'] / 1e6:,.0f} MB" if entry["bytes"] else ""
            found = entry["detail"] if entry["state"] == "damaged" else f"Expected: {', '.join(entry['files'])}."
            lines = [found, f"From {entry['origin']}{size}; licence: {entry['licence']}.", entry["note"]]
            for line in filter(None, lines):
                console.print(Padding(escape(line), (0, 0, 0, 9)), style="dim")


def fetch_dataset(name: str) -> list[str]:
    """Fetch a dataset's files with a bar for each, and return where they lie."""
    source = source_of(DATASETS[name])
    if source is None:
        raise OptionError(f"{name} is made from its seed: there is nothing to fetch.")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks = {file.path: bar.add_task(file.path, total=file.size or None, visible=False) for file in source.files}

        def tell(path: str, done: int, total: int) -> None:
            bar.update(tasks[path], completed=done, total=total or None, visible=True)

        return [str(path) for path in fetch(source, tell)]
