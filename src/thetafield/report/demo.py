"""The demo: four methods on 2-Moons, scored on domains nobody has seen, and a page that shows what they learned."""

import platform
import shlex
import time
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from thetafield import __version__
from thetafield.datasets.base import DATASETS, Dataset
from thetafield.errors import NeedError
from thetafield.evaluation import evaluate, field_laws
from thetafield.evaluation.looks import quarter_domains
from thetafield.fields.model import FieldModel
from thetafield.files import writable_folder, write_json, write_whole
from thetafield.methods.base import METHODS
from thetafield.report.result import DemoResult, MethodRun, pooled
from thetafield.training.display import training_display
from thetafield.training.fit import Report
from thetafield.training.train import device_name, pick_device, train_field

DEMO_METHODS = ("erm", "erm-d", "nda", "neurallio")  # the last one has the transport that the figures look into
NUM_TRIPLETS = 5000
# A few steps each: enough to see that everything runs, far too few to learn anything.
QUICK_OPTIONS: dict[str, dict[str, Any]] = {
    "erm": {"steps": 20},
    "erm-d": {"steps": 20},
    "nda": {"steps": 20, "tune_steps": 10},
    "neurallio": {
        "epochs": 4,
        "samples": 50,
        "base_steps": 20,
        "tune_steps": 20,
        "rank": 16,
        "latent_dim": 8,
        "hidden": 16,
    },
}


def run_demo(
    out: Path, *, seed: int = 0, device: str = "auto", quick: bool = False, console: Console | None = None
) -> DemoResult:
    """Train and score the methods, then write `out/index.html` and `out/result.json`.

    Args:
        out: Folder of the page.
        seed: Root seed of the data, the start, the batches and the noise.
        device: auto, cpu or cuda.
        quick: Train for a few steps only, to see that everything runs.
        console: Where to show progress and the table; the terminal by default.
    """
    check_extra()
    writable_folder(out)
    from thetafield.report.page import render_page

    console = console or Console()
    place = pick_device(device)
    started = time.perf_counter()
    data = DATASETS["two-moons"](seed)
    width = max(len(METHODS[name].title) for name in DEMO_METHODS)
    runs = []
    for name in DEMO_METHODS:
        with training_display(f"{METHODS[name].title:<{width}}", console) as report:
            runs.append(_run(name, data, seed, str(place), QUICK_OPTIONS[name] if quick else {}, report))
    with console.status("Measuring the laws of the transport"):
        laws = field_laws(runs[-1].model, data.test["random"].z, NUM_TRIPLETS, seed)
    result = DemoResult(
        seed=seed,
        device=device_name(place),
        quick=quick,
        command=_command(out, seed, device, quick),
        dataset=data,
        runs=tuple(runs),
        unseen=quarter_domains(data.test["random"].z.numpy()),
        laws=laws,
        versions=_versions(),
        seconds=time.perf_counter() - started,
    )
    console.print(result_table(result))
    with console.status("Drawing the page"):
        page = render_page(result)
    write_whole(out / "index.html", page.encode())
    write_json(out / "result.json", result.record())
    console.print(f"The page is {out / 'index.html'}", soft_wrap=True, markup=False)
    return result


def check_extra() -> None:
    """Say what to install before minutes of training, not after."""
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise NeedError(f"The page needs {' and '.join(missing)}: pip install 'thetafield[report]'.")


def _run(name: str, data: Dataset, seed: int, device: str, options: Mapping[str, Any], report: Report) -> MethodRun:
    trained = train_field(
        data.train,
        name,
        seed=seed,
        options=options,
        predictor=data.predictor,
        predictor_options=data.predictor_options,
        device=device,
        report=report,
    )
    assert isinstance(trained.model, FieldModel)  # the figures look into θ(z)
    started = time.perf_counter()
    groups = {group: evaluate(trained.model, domains) for group, domains in data.test.items()}
    return MethodRun(
        name=name,
        title=METHODS[name].title,
        model=trained.model,
        groups=groups,
        scores=pooled(groups, {group: domains.sizes.numpy() for group, domains in data.test.items()}),
        train_seconds=trained.seconds,
        eval_seconds=time.perf_counter() - started,
    )


def result_table(result: DemoResult) -> Table:
    """Return the table that the terminal shows."""
    counts = {name: len(domains) for name, domains in result.dataset.test.items()}
    table = Table(title="Error on unseen domains (%)", caption="quick run: untrained" if result.quick else None)
    table.add_column("method")
    for name, count in counts.items():
        table.add_column(f"{name} ({count})", justify="right")
    table.add_column("worst decile", justify="right")
    table.add_column("seconds", justify="right")
    best = min(result.runs, key=lambda run: run.scores.score)
    for run in result.runs:
        cells = [f"{run.groups[name].score:.2f}" for name in counts]
        cells += [f"{run.scores.worst_decile:.2f}", f"{run.train_seconds:.1f}"]
        table.add_row(run.title, *cells, style="bold" if run is best else None)
    return table


def _command(out: Path, seed: int, device: str, quick: bool) -> str:
    words = ["thetafield", "demo", "--out", str(out), "--seed", str(seed)]
    words += ["--device", device] if device != "auto" else []
    return shlex.join([*words, "--quick"] if quick else words)


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "numpy", "matplotlib")}
    return {"thetafield": __version__, "python": platform.python_version(), **packages}
