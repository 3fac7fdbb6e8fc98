"""Live progress of training on the terminal's error stream, so that standard output stays clean."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from thetafield.training.fit import Progress as TrainingProgress
from thetafield.training.fit import Report


@contextmanager
def training_display(title: str, console: Console | None = None) -> Iterator[Report]:
    """Show a bar with phase, epochs, loss and time left; yields the callback of :func:`fit`."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console or Console(stderr=True))
    task = bar.add_task(title, total=None, loss="")

    def report(progress: TrainingProgress) -> None:
        bar.start()  # on the first epoch and not before, so that a refused setting shows no empty bar
        bar.update(
            task,
            description=f"{title} ({progress.phase})",
            completed=progress.done,
            total=progress.total,
            loss="" if progress.loss is None else f"loss {progress.loss:.4g}",
        )

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
