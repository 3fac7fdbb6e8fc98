"""The trials of a suite laid out by method and dataset, with everything that is not the same told apart."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thetafield.report.store.items import Gap, Item, Trial, in_order
from thetafield.report.store.paper import is_ours
from thetafield.report.store.reading import Results


@dataclass(frozen=True)
class Place:
    """The repetitions of one experiment.

    Args:
        trials: The finished ones, in the order of their seeds.
        gaps: Those without a result.
    """

    trials: tuple[Trial, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def item(self) -> Item | None:
        """Any of them, for what they have in common."""
        return next(iter((*self.trials, *self.gaps)), None)


@dataclass(frozen=True)
class Line:
    """A row of a grid: a method under one setting.

    Args:
        group: The part of the table it stands in.
        title: How it is called there.
        method: Registry name.
    """

    group: str
    title: str
    method: str


@dataclass(frozen=True)
class Grid:
    """Methods by datasets.

    Args:
        lines: The rows, part by part.
        columns: The columns' titles.
        places: The experiments by row and column.
    """

    lines: tuple[Line, ...]
    columns: tuple[str, ...]
    places: Mapping[tuple[Line, str], Place]

    def at(self, line: Line, column: str) -> Place:
        """Return the experiment of a row and a column; empty where there is none."""
        return self.places.get((line, column), Place())

    def items(self, line: Line) -> list[Item]:
        """Return one item of each experiment of a row."""
        return [place.item for (row, _), place in self.places.items() if row == line and place.item is not None]


def grid(results: Results) -> Grid:
    """Lay out the items of a suite.

    Rows are the methods' labels and columns the datasets' labels. Where items of one row and one column differ in more
    than seed and split, the options in which they differ are added to the label, so that no mean is taken over things
    that are not the same.
    """
    items = sorted(results.items, key=lambda item: item.position)
    rows = _told_apart(items, lambda i: i.row, lambda i: i.column, method_setting)
    columns = _told_apart(items, lambda i: i.column, lambda i: i.row, dataset_setting)
    found: dict[tuple[Line, str], list[Item]] = defaultdict(list)
    for item, row, column in zip(items, rows, columns, strict=True):
        found[Line(item.group, row, item.method), column].append(item)
    lines = list(dict.fromkeys(line for line, _ in found))
    groups = list(dict.fromkeys(line.group for line in lines))
    return Grid(
        # Ours come last in their part, as in the paper.
        lines=tuple(sorted(lines, key=lambda line: (groups.index(line.group), is_ours(line.method)))),
        columns=tuple(dict.fromkeys(column for _, column in found)),
        places={where: place(placed) for where, placed in found.items()},
    )


def place(items: Sequence[Item]) -> Place:
    """Return the items of one experiment, in the order of their repetitions.

    Parts of a suite may ask for the same trial: a repetition counts once, a finished one where there is one.
    """
    once: dict[Any, Item] = {}
    for item in sorted(items, key=lambda item: not isinstance(item, Trial)):
        once.setdefault(item.repetition, item)
    ordered = sorted(once.values(), key=lambda item: in_order(item.repetition))
    return Place(
        tuple(item for item in ordered if isinstance(item, Trial)),
        tuple(item for item in ordered if isinstance(item, Gap)),
    )


def method_setting(item: Item) -> dict[str, Any]:
    """Return all that distinguishes two rows."""
    tuned = {"tune": item.spec["tune"], "folds": item.spec.get("tune_folds", 1)} if item.spec["tune"] else {}
    return {"method": item.method} | dict(item.spec["options"]) | tuned


def dataset_setting(item: Item) -> dict[str, Any]:
    """Return all that distinguishes two columns; a split is a repetition."""
    return {"dataset": item.dataset} | item.altered


def _told_apart(items: Sequence[Item], label: Any, other: Any, setting: Any) -> list[str]:
    """Return the label of every item, with the settings in which items of one label and one other label differ."""
    settings: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for item in items:
        content = setting(item)
        settings[item.group, label(item), other(item)][json.dumps(content, sort_keys=True)] = content
    differing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (group, name, _), contents in settings.items():
        keys = {key for content in contents.values() for key in content}
        many = {key for key in keys if len({json.dumps(content.get(key)) for content in contents.values()}) > 1}
        differing[group, name] |= many
    titles = []
    for item in items:
        content, keys = setting(item), differing[item.group, label(item)]
        words = [
            str(content[key]) if key in ("method", "dataset") else f"{key} = {_word(content[key])}"
            for key in sorted(keys)
            if key in content
        ]
        titles.append(f"{label(item)} ({', '.join(words)})" if words else label(item))
    return titles


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool | None) else str(value)
