"""Progress of a suite on the terminal's error stream: a live table, or one line per trial where nobody looks."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from thetafield.bench.engine import Event, Watch
from thetafield.bench.job import Job
from thetafield.bench.plan import Plan

NARROWEST = 7  # a cell such as 3/5 ▸1
MARKS = {"running": ("▸", "yellow"), "failed": ("✗", "red"), "needs": ("–", "dim"), "data": ("∅", "dim")}


class Standing:
    """How the trials of a suite stand while it runs.

    Args:
        plan: How they stood at first.
        todo: Those that are to be run.
    """

    def __init__(self, plan: Plan, todo: list[Job]) -> None:
        self.trials = plan.trials
        self.states = {spec.key: plan.state(spec) for spec in plan.trials}
        self.left = {spec.key: spec for spec in todo}
        self.total, self.ended = len(todo), 0
        self.started: dict[str, float] = {}
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.most = 1  # trials at a time

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        key = event.spec.key
        if event.kind in ("started", "again"):
            self.states[key] = "running" if event.kind == "started" else "missing"
            self.started[key] = time.monotonic()
            self.most = max(self.most, sum(state == "running" for state in self.states.values()))
            return
        self.states[key] = event.kind
        self.left.pop(key, None)
        self.ended += 1
        if event.kind == "done":
            self.seconds[event.spec.dataset, event.spec.method].append(time.monotonic() - self.started[key])

    def seconds_left(self) -> float | None:
        """Return about how long the rest takes, from trials of the same method on the same dataset where there are."""
        every = [each for cell in self.seconds.values() for each in cell]
        known = all(spec.expected is not None for spec in self.left.values())
        if not every and not known:
            return None
        usual = sum(every) / len(every) if every else 0.0
        means = {cell: sum(each) / len(each) for cell, each in self.seconds.items()}
        now = time.monotonic()
        rest = longest = 0.0
        for key, spec in self.left.items():
            spent = now - self.started[key] if self.states[key] == "running" else 0.0
            guess = usual if spec.expected is None else spec.expected
            still = max(0.0, means.get((spec.dataset, spec.method), guess) - spent)
            rest, longest = rest + still, max(longest, still)
        return max(rest / self.most, longest)  # in the end not all workers have something to do


def standing_table(states: dict[str, str], trials: tuple[Job, ...], width: int, rows: int | None = None) -> Table:
    """Return datasets × methods with how many trials are done of how many, and what else is to be said of them.

    Args:
        states: State of each trial by its key.
        trials: The trials.
        width: Characters in a line; where the table does not fit, every dataset with every method is a row.
        rows: Most rows, of which those with something to do are shown; None shows all.
    """
    cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for spec in trials:
        cells[spec.dataset_label, spec.method_label][states[spec.key]] += 1
    datasets, methods = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    if len(methods) >= len(datasets):
        lines = {method: [cells[dataset, method] for dataset in datasets] for method in methods}
        heads = ["method", *datasets]
    else:
        lines = {dataset: [cells[dataset, method] for method in methods] for dataset in datasets}
        heads = ["dataset", *methods]
    least = [max(NARROWEST, *map(len, head.split())) + 2 for head in heads[1:]]
    if max(map(len, lines)) + sum(least) > width:
        lines = {f"{dataset} · {method}": [counts] for (dataset, method), counts in cells.items() if counts}
        heads = ["dataset · method", "trials"]
    shown = list(lines)
    if rows is not None and len(shown) > rows:
        busy = {name: sum((cell for cell in lines[name]), Counter()) for name in shown}
        first = sorted(shown, key=lambda name: (not busy[name]["running"], not busy[name]["missing"]))[: max(1, rows)]
        shown = [name for name in shown if name in first]
    table = Table(*map(escape, heads), box=None, header_style="bold", pad_edge=False)
    for name in shown:
        table.add_row(Text(name), *map(_cell, lines[name]))
    return table


def _cell(counts: Counter[str]) -> Text:
    """Return done/all, and the number of trials that run, failed, or cannot be run."""
    if not counts:
        return Text("")
    text = Text(f"{counts['done']}/{sum(counts.values())}", style="green" if counts["done"] else "")
    for state, (mark, style) in MARKS.items():
        if counts[state]:
            text.append(f" {mark}{counts[state]}", style=style)
    return text


@contextmanager
def suite_display(plan: Plan, todo: list[Job], console: Console | None = None) -> Iterator[Watch]:
    """Show how a suite stands; yields what is to be told of every event."""
    console = console or Console(stderr=True)
    standing, told = Standing(plan, todo), set[str]()
    if not console.is_terminal:

        def say(line: str) -> None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

        def tell(event: Event) -> None:
            if not standing.started:  # by now there are workers, and the store is ours
                say(f"{len(todo)} {'trial' if len(todo) == 1 else 'trials'} to run.")
            standing.hear(event)
            if event.kind != "started":
                rest = _rest(standing)
                say(f"{standing.ended}/{standing.total}{rest and f' ({rest})'} {_line(event, told)}")

        yield tell
        return

    def render() -> RenderableType:
        bar = ProgressBar(total=max(1, standing.total), completed=standing.ended, width=40)
        line = Table.grid(padding=(0, 1))
        line.add_row(bar, Text(_summary(standing)))
        rows = console.height - 4
        return Group(standing_table(standing.states, standing.trials, console.width, rows), line)

    with Live(console=console, get_renderable=render, refresh_per_second=2, transient=True):
        yield standing.hear


def _summary(standing: Standing) -> str:
    counts = Counter(standing.states.values())
    words = [f"{standing.ended} of {standing.total}", f"{counts['running']} running"]
    if counts["failed"]:
        words.append(f"{counts['failed']} failed")
    rest = _rest(standing)
    return ", ".join([*words, rest] if rest else words)


def _rest(standing: Standing) -> str:
    left = standing.seconds_left() if standing.left else None
    return "" if left is None else f"about {timedelta(seconds=round(left))} left"


def _line(event: Event, told: set[str]) -> str:
    """Return what became of a trial; why data are absent is told once, though it may hold for hundreds of trials."""
    spec, outcome = event.spec, event.outcome
    name = f"{spec.dataset_label}, {spec.method_label}, seed {spec.seed}"
    content = {} if outcome is None else outcome.content
    if event.kind == "done":
        unit = " %" if content["metric"] == "error" else ""
        return f"{name}: {content['metric']} {content['score']:.2f}{unit} in {content['train_seconds']:.1f} s"
    words = {"failed": "failed", "again": "will run again", "needs": "does not apply", "data": "lacks its data"}
    reason = str(content.get("sentence") or content.get("reason"))
    if event.kind == "data" and reason in told:
        return f"{name}: lacks its data too"
    told.add(reason)
    return f"{name}: {words[event.kind]}: {reason}"
