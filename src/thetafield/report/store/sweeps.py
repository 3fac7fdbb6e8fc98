"""Sweeps: one thing is varied, and everything else stays: panels of curves, and the same numbers as tables."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from thetafield.methods.base import METHODS
from thetafield.report.store.cells import empty, fewer, summed_up
from thetafield.report.store.grid import Place, dataset_setting, method_setting, place
from thetafield.report.store.items import Item, Trial
from thetafield.report.store.machines import elsewhere, machines
from thetafield.report.store.reading import Results
from thetafield.report.store.table import Cell, Column, Notes, Row, Table, marked, sized, unit

Dial = Callable[[Item], float | None]
SENSITIVE = {
    "num_generators": "number of generators",
    "hidden": "width of the field network",
    "neighbours": "neighbours k in a chart",
    "latent_dim": "dimension of the latent",
}
CONVERGING = {"num_train", "num_test", "epochs"}
DROPPED = "dropped_coordinates"
IMPERFECT = {
    "noise": ("noise_coordinates", "coordinates of noise added"),
    "redundancy": ("redundant_coordinates", "redundant projections added"),
    "incompleteness": (DROPPED, "projections dropped, of 8"),
}


@dataclass(frozen=True)
class Point:
    """One value of what is varied.

    Args:
        x: The value.
        place: The repetitions there.
    """

    x: float
    place: Place


@dataclass(frozen=True)
class Panel:
    """What happens when one thing is varied.

    Args:
        name: Short name, part of the table's file.
        title: What it shows.
        label: What is varied.
        lines: Points in rising order, by the method's label.
        metric: What is measured.
        key: Where it stands in a result.
    """

    name: str
    title: str
    label: str
    lines: dict[str, tuple[Point, ...]]
    metric: str = "error"
    key: str = "score"

    def cell(self, point: Point) -> Cell | None:
        """Return mean and standard deviation at a point, or the least time; None without a result."""
        values = [trial.result[self.key] for trial in point.place.trials]
        return summed_up(values, self.metric) if values else None

    @property
    def trials(self) -> list[Trial]:
        """All trials behind it."""
        return [trial for points in self.lines.values() for point in points for trial in point.place.trials]

    @property
    def varies(self) -> bool:
        """Whether it has results at two values at least."""
        return len({point.x for points in self.lines.values() for point in points if point.place.trials}) > 1


def imperfection_panels(results: Results) -> list[Panel]:
    """Return error over the number of noisy, redundant and missing coordinates."""

    def dial(kind: str) -> Dial:
        option = IMPERFECT[kind][0]
        others = [name for name, _ in IMPERFECT.values() if name != option]

        def level(item: Item) -> float | None:
            # Dropping none of eight projections is an imperfection too: the true coordinates are gone.
            untouched = all(item.dataset_option(name) in (None, *((0,) * (name != DROPPED))) for name in others)
            return _float(item.dataset_option(option)) if untouched else None

        return level

    return [
        _panel(results, kind, kind.capitalize(), label, dial(kind), {option})
        for kind, (option, label) in IMPERFECT.items()
    ]


def sensitivity_panels(results: Results) -> list[Panel]:
    """Return error over each of the four options, the others being as usual."""
    dials = _alone(results, {name: partial(_number, name=name) for name in SENSITIVE})
    return [
        _panel(results, name.replace("_", "-"), label.capitalize(), label, dials[name], set(SENSITIVE))
        for name, label in SENSITIVE.items()
    ]


def convergence_panels(results: Results) -> list[Panel]:
    """Return error over the number of training domains, and over the number of epochs."""
    dials = _alone(results, {"domains": _domains, "epochs": lambda item: _float(item.option("epochs"))})
    return [
        _panel(results, "domains", "Over training domains", "training domains N", dials["domains"], CONVERGING),
        _panel(results, "epochs", "Over epochs", "epochs", dials["epochs"], CONVERGING),
    ]


def scaling_panels(results: Results) -> list[Panel]:
    """Return seconds of training over the number of domains, and over the number of parameters of a head."""
    dials = {
        "domains": lambda item: _domains(item) if _parameters(item) is None else None,
        "parameters": _parameters,
    }
    labels = {"domains": "training domains N", "parameters": "parameters D of a head"}
    varied = {"domains": {"num_train"}, "parameters": {"parameters"}}
    return [
        _panel(results, name, f"Over {name}", labels[name], dial, varied[name], "seconds", "train_seconds")
        for name, dial in dials.items()
    ]


def sweep_table(panel: Panel, results: Results, title: str) -> Table:
    """Return the numbers of a panel: a row for each line, a column for each value."""
    notes = Notes()
    xs = sorted({point.x for points in panel.lines.values() for point in points})
    found = {(label, p.x): p for label, points in panel.lines.items() for p in points}
    seeds = {x: {t.repetition for (_, at), p in found.items() if at == x for t in p.place.trials} for x in xs}
    means = [cell.value for point in found.values() if (cell := panel.cell(point)) and cell.value is not None]
    rows = []
    for label in panel.lines:
        cells = []
        for x in xs:
            point = found.get((label, x), Point(x, Place()))
            cell, asked = panel.cell(point), len(point.place.trials) + len(point.place.gaps)
            if cell is None:
                cells.append(empty(point.place, notes))
                continue
            said = (notes.add(fewer(cell.count, asked, point.place)),) if cell.count < asked else ()
            cells.append(replace(sized(cell, means, panel.metric), notes=said, whole=cell.count == len(seeds[x])))
        rows.append(Row(label, tuple(cells)))
    timed = panel.metric == "seconds"
    on = machines(panel.trials) if timed else []
    better = "low" if len(rows) > 1 and len(on) < 2 else ""  # times of several machines have no best
    columns = tuple(Column(f"{x:,.10g}", "", better) for x in xs)
    measured = "Seconds of training" if timed else unit(panel.metric).capitalize()
    shown = "mean ± standard deviation over seeds"
    if timed:
        shown = f"the least over seeds, on {' and '.join(on) or 'no machine yet'}"
    return Table(
        name=f"{results.suite}-{panel.name}",
        title=title,
        head=panel.label[0].upper() + panel.label[1:],
        columns=columns,
        rows=marked(rows, columns),
        notes=notes.texts,
        about=f"{measured}, over {panel.label}: {shown}.",
        command=results.command(results.suite),
    )


def _panel(
    results: Results,
    name: str,
    title: str,
    label: str,
    dial: Dial,
    varied: set[str],
    metric: str = "",
    key: str = "score",
) -> Panel:
    """Collect the points of a panel: items with a value on the dial, by the label of their method.

    Options that are varied, or stand alike in all items with a value, do not tell lines apart; all others do.
    """
    found: dict[str, dict[float, list[Item]]] = defaultdict(lambda: defaultdict(list))
    ordered = sorted(results.items, key=lambda item: item.position)
    items = [(item, x) for item in ordered if (x := dial(item)) is not None]
    labels = _labels(items, varied)
    if metric == "seconds":
        labels = [label + where for label, where in zip(labels, elsewhere([item for item, _ in items]), strict=True)]
    for (item, x), line in zip(items, labels, strict=True):
        found[line][float(x)].append(item)
    lines = {line: tuple(Point(x, place(found[line][x])) for x in sorted(found[line])) for line in found}
    measured = metric or next((trial.result["metric"] for trial in results.trials), "error")
    return Panel(name, title, label, lines, measured, key)


def _labels(items: Sequence[tuple[Item, float]], varied: set[str]) -> list[str]:
    """Return the line of every item, given with its value: its label without that, where labels carry it.

    Suites may call a trial "NeuralLio, k = 7" or keep one label for the whole line. Trials of one method whose fixed
    options agree belong to one line, which goes by the shortest label among them up to what they all begin with. Under
    one label, trials whose options differ are one line too if no value has both: five domains have but four neighbours.
    """
    keys = []
    for item, _ in items:
        fixed = {k: v for k, v in (method_setting(item) | dataset_setting(item)).items() if k not in varied}
        keys.append((item.method, json.dumps(fixed, sort_keys=True)))
    names: dict[Any, set[str]] = defaultdict(set)
    values: dict[Any, set[float]] = defaultdict(set)
    for (item, x), key in zip(items, keys, strict=True):
        names[key].add(item.row)
        values[key].add(x)
    titles = {key: next(iter(found)) if len(found) == 1 else _common(found, key[0]) for key, found in names.items()}
    taken = Counter((title, x) for key, title in titles.items() for x in values[key])
    twice = {title for (title, _), count in taken.items() if count > 1}
    # Two lines that would go by one name keep the names of their items.
    return [item.row if titles[key] in twice else titles[key] for (item, _), key in zip(items, keys, strict=True)]


def _common(labels: set[str], method: str) -> str:
    """Return what several labels begin with, or the method's name.

    >>> _common({"Ours, 50 epochs", "Ours, 100 epochs"}, "neurallio"), _common({"k = 3", "m = 5"}, "neurallio")
    ('Ours', 'NeuralLio')
    """
    shortest = min(labels, key=len)
    length = next((i for i, c in enumerate(shortest) if any(label[i] != c for label in labels)), len(shortest))
    name = METHODS[method].title if method in METHODS else method
    if all(label.startswith(name) for label in labels):
        return name
    return shortest[:length].rstrip(" ,:=(0123456789").strip() or name


def _number(item: Item, name: str) -> float | None:
    """Return an option as a number; where it is left open, the one that training came to, if results tell."""
    value = item.option(name)
    if value is None and isinstance(item, Trial):
        value = item.result.get("options", {}).get(name)
    return _float(value)


def _domains(item: Item) -> float | None:
    return _float(item.dataset_option("num_train"))


def _parameters(item: Item) -> float | None:
    return _float(item.dataset_option("parameters"))


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _alone(results: Results, dials: Mapping[str, Dial]) -> dict[str, Dial]:
    """Return dials that read only those items in which all other dials stand where most trials of the method have them.

    Where most leave a dial open, it is open in all of them. A dial that cannot be read off an item, as before it has
    run, stands nowhere, and nothing speaks against the item.
    """
    usual: dict[tuple[str, str], float | None] = {}
    for method in {item.method for item in results.items}:
        items = [item for item in results.items if item.method == method]
        finished = [item for item in items if isinstance(item, Trial)] or items
        for name, dial in dials.items():
            usual[method, name] = Counter(dial(item) for item in finished).most_common(1)[0][0]

    def alone(item: Item, name: str) -> float | None:
        others = (other for other in dials if other != name)
        same = all(dials[other](item) in (None, usual[item.method, other]) for other in others)
        return dials[name](item) if same else None

    return {name: partial(alone, name=name) for name in dials}
