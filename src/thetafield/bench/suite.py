"""Suites: tables and figures as data, grids of trials in TOML files."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Generic, TypeVar

from thetafield.bench.job import Job
from thetafield.bench.spec import TrialSpec
from thetafield.errors import OptionError, ThetafieldError, closest

SHIPPED = files("thetafield.bench") / "suites"
SUITE = ("title", "about", "jobs", "grid")
GRID = ("group", "datasets", "splits", "methods", "seeds", "tune", "tune_folds", "keep")
ENTRY = ("name", "options", "label")
MOST_TRIALS = 100_000  # of a grid: who asks for more has slipped
J = TypeVar("J", bound=Job)


@dataclass(frozen=True)
class Suite(Generic[J]):
    """A named list of trials.

    Args:
        name: Name of the file without its ending.
        title: What it is, in a few words.
        about: What it shows and what one has to know to run it.
        trials: All trials in the order in which they run, seed after seed, so that a part of them is a whole table of
            fewer seeds; one that several grids ask for is there several times, each with its own labels.
        jobs: How many run at a time, where nobody says otherwise: 1 where times are measured.
    """

    name: str
    title: str
    about: str
    trials: tuple[J, ...]
    jobs: int | None = None


def suite_names() -> list[str]:
    """Return the names of the suites that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in SHIPPED.iterdir() if entry.name.endswith(".toml"))


def load_suite(name: str) -> Suite[TrialSpec]:
    """Read a suite of the package by its name, or a person's own by the path of its file.

    Example:
        >>> load_suite("smoke").title
        'Smoke test'

    Raises:
        OptionError: There is no such suite, or it asks for something that does not exist.
    """
    if not name.endswith(".toml"):
        if name not in suite_names():
            raise OptionError(
                f"There is no suite {name!r}; {closest(name, suite_names())} A suite of your own is named by its path, "
                "such as my/suite.toml."
            )
        return _parsed((SHIPPED / f"{name}.toml").read_bytes(), name, f"suite {name!r}")
    path = Path(name)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionError(f"The suite {path} cannot be read ({error.strerror}): name a .toml file.") from None
    return _parsed(content, path.stem, str(path))


def _parsed(content: bytes, name: str, where: str) -> Suite[TrialSpec]:
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{where} is not TOML: {str(error).rstrip('.')}.") from None
    _known(table, SUITE, where)
    title, about = (_typed(table.get(key, ""), str, f"{where}: {key!r}", "text") for key in ("title", "about"))
    jobs = table.get("jobs")
    if jobs is not None:
        _typed(jobs, int, f"{where}: 'jobs'", "a whole number from 1 on", lambda n: n > 0)
    grids = table.get("grid", [])
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, dict) for grid in grids):
        raise OptionError(f"{where} has no grid: add a table [[grid]] with datasets, methods and seeds.")
    trials = []
    for number, grid in enumerate(grids, 1):
        trials += _grid(grid, f"{where}, grid {number}", name)
    return Suite(name, title or name, about, tuple(trials), jobs)


def _grid(grid: Mapping[str, Any], where: str, suite: str) -> list[TrialSpec]:
    """Return the trials of one grid: every dataset, under every split, with every method and every seed."""
    _known(grid, GRID, where)
    for key in ("datasets", "methods", "seeds"):
        if key not in grid:
            raise OptionError(f"{where} has no {key}: add them.")
    datasets = _split(_entries(grid["datasets"], f"{where}: 'datasets'"), grid, where)
    methods = _entries(grid["methods"], f"{where}: 'methods'")
    tune = _typed(grid.get("tune", 0), int, f"{where}: 'tune'", "a whole number from 0 on", lambda n: n >= 0)
    folds = _typed(
        grid.get("tune_folds", 1), int, f"{where}: 'tune_folds'", "a whole number from 1 on", lambda n: n > 0
    )
    keep = _typed(grid.get("keep", False), bool, f"{where}: 'keep'", "true or false")
    group = _typed(grid.get("group", suite), str, f"{where}: 'group'", "text")
    trials, seeds = [], _seeds(grid["seeds"], where)
    count = len(datasets) * len(methods) * len(seeds)
    if count > MOST_TRIALS:
        raise OptionError(f"{where} asks for {count:,} trials, but a grid has {MOST_TRIALS:,} at most: ask for fewer.")
    for seed, dataset, method in product(seeds, datasets, methods):
        try:
            spec = TrialSpec.of(
                dataset["name"],
                method["name"],
                seed=seed,
                dataset_options=dataset.get("options"),
                options=method.get("options"),
                tune=tune,
                tune_folds=folds,
                group=group,
                dataset_label=dataset.get("label"),
                method_label=method.get("label"),
                keep=keep,
            )
        except ThetafieldError as error:
            raise OptionError(f"{where}: {error}") from None
        trials.append(spec)
    return trials


def _entries(values: Any, where: str) -> list[dict[str, Any]]:
    """Return datasets or methods, each a name or a table {name, options, label}, as tables."""
    if not isinstance(values, list) or not values:
        raise OptionError(f"{where} expects a list of names, but got {values!r}.")
    entries = []
    for value in values:
        entry = {"name": value} if isinstance(value, str) else value
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise OptionError(f"{where} expects names or tables {{name = …, options = {{…}}}}, but got {value!r}.")
        _known(entry, ENTRY, where)
        _typed(entry.get("options", {}), dict, f"{where}: 'options' of {entry['name']!r}", "a table")
        label = entry.get("label", entry["name"])
        _typed(label, str, f"{where}: 'label' of {entry['name']!r}", "some text", lambda text: bool(text.strip()))
        entries.append(entry)
    named = [entry["label"] for entry in entries if "label" in entry]
    for label in named:
        if named.count(label) > 1:
            raise OptionError(f"{where} has two entries labelled {label!r}: call one of them otherwise.")
    return entries


def _split(datasets: list[dict[str, Any]], grid: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Return the datasets under every split: a repetition, like a seed, so that all have one label."""
    if "splits" not in grid:
        return datasets
    expected = "a list of numbers such as [7, 8]"
    splits = _typed(grid["splits"], list, f"{where}: 'splits'", expected, bool)
    made = []
    for split, entry in product(splits, datasets):
        _typed(split, int, f"{where}: 'splits'", expected, lambda n: n >= 0)
        options = {**entry.get("options", {}), "split": split}
        made.append({"name": entry["name"], "options": options, "label": entry.get("label", entry["name"])})
    return made


def _seeds(value: Any, where: str) -> Sequence[int]:
    expected = "a count such as 5, or a list such as [0, 1]"
    if isinstance(value, int):
        return range(_typed(value, int, f"{where}: 'seeds'", expected, lambda n: n > 0))
    seeds = _typed(value, list, f"{where}: 'seeds'", expected, bool)
    found = [_typed(seed, int, f"{where}: 'seeds'", expected, lambda n: n >= 0) for seed in seeds]
    if len(set(found)) < len(found):
        raise OptionError(f"{where}: 'seeds' has a seed twice: {', '.join(map(str, found))}.")
    return found


def _known(table: Mapping[str, Any], valid: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in valid:
            raise OptionError(f"{where} has an unknown key {key!r}; {closest(key, valid)}")


def _typed(value: Any, kind: type, where: str, words: str, accept: Callable[[Any], bool] = lambda value: True) -> Any:
    """Return a value of the right type, or say what was expected; true is no number."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)) or not accept(value):
        raise OptionError(f"{where} expects {words}, but got {value!r}.")
    return value
