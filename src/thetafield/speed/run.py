"""The command: measure section by section, keep what is known, and show it as a table, a file and a figure."""

import os
import platform
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from thetafield import __version__
from thetafield.errors import OptionError, closest
from thetafield.files import writable_folder, write_json
from thetafield.speed.findings import Curve, Figure, Finding
from thetafield.speed.sections import SECTIONS
from thetafield.speed.timing import Bench
from thetafield.training.train import device_name, pick_device

QUICK: dict[str, Any] = {"turns": 3, "span": 0.1, "patience": 8.0}


def run_speed(
    out: Path,
    *,
    device: str = "auto",
    quick: bool = False,
    only: Sequence[str] | None = None,
    console: Console | None = None,
) -> dict[str, Any]:
    """Measure, write `out/speed.json` after every section and `out/speed.png` in the end, and return the record.

    Args:
        out: Folder of both files.
        device: auto, cpu or cuda.
        quick: Fewer turns, smaller sizes, no whole trainings.
        only: Names of the sections to measure; all by default.
        console: Where to show progress; the terminal's error stream by default.
    """
    names = _names(only)
    place = pick_device(device)
    writable_folder(out)
    record: dict[str, Any] = {
        "command": _command(out, device, quick, only),
        "machine": {
            "device": device_name(place),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,  # of others, before anything runs here
        },
        "versions": _versions(),
        "quick": quick,
        "sections": [],
        "figures": [],
        "scaling": {},
        "skipped": [],
    }
    started = time.perf_counter()
    console = console or Console(stderr=True)
    with _display(len(names), console) as (tell, finish):
        for name in names:
            bench = Bench(place, quick, tell=_prefixed(name, tell), **(QUICK if quick else {}))
            for finding in SECTIONS[name](bench):
                _enter(record, name, finding)
            finish()
            record["sections"].append(name)
            record["seconds"] = time.perf_counter() - started
            write_json(out / "speed.json", record)
    if find_spec("matplotlib") is None:
        console.print("There is no figure without matplotlib: pip install 'thetafield[report]'.")
    else:
        from thetafield.report.figures.speed import save_speed

        save_speed(record, out / "speed.png")
    return record


def _names(only: Sequence[str] | None) -> list[str]:
    """Return the sections to measure in the order of the report, or say which name is none."""
    if only is None:
        return list(SECTIONS)
    for name in only:
        if name not in SECTIONS:
            raise OptionError(f"There is no section {name!r} of speed; {closest(name, SECTIONS)}")
    if not only:
        raise OptionError(f"--only needs at least one section: {', '.join(SECTIONS)}.")
    return [name for name in SECTIONS if name in only]


def _enter(record: dict[str, Any], section: str, finding: Finding) -> None:
    """Put a finding where it belongs in the record."""
    if isinstance(finding, Figure):
        record["figures"].append(finding.record() | {"section": section})
    elif isinstance(finding, Curve):
        record["scaling"][finding.name] = finding.record()
    else:
        record["skipped"].append({"section": section, "name": finding.name, "why": finding.why})


def _prefixed(name: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    return lambda text: tell(f"{name}: {text}")


@contextmanager
def _display(total: int, console: Console) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Show what is under way and how many sections are done; yields what to call for either."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("speed", total=total)
        yield lambda text: bar.update(task, description=text), lambda: bar.advance(task)
        bar.update(task, description="speed")


def _command(out: Path, device: str, quick: bool, only: Sequence[str] | None) -> str:
    words = ["thetafield", "speed", "--out", str(out)]
    words += ["--device", device] if device != "auto" else []
    words += ["--only", ",".join(only)] if only else []
    return shlex.join([*words, "--quick"] if quick else words)


def _versions() -> dict[str, str]:
    found = {"thetafield": __version__, "python": platform.python_version()}
    for name in ("torch", "numpy", "triton"):
        with suppress(PackageNotFoundError):  # Triton comes with torch for GPUs alone
            found[name] = version(name)
    return found
