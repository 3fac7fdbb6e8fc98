"""What a store holds, suite by suite: finished trials, and the gaps, each with the reason why there is no result."""

import math
import shlex
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from thetafield.bench.store import Store
from thetafield.bench.suite import load_suite, suite_names
from thetafield.errors import FormatError
from thetafield.evaluation.looks import Look
from thetafield.files import read_json
from thetafield.report.store.items import Gap, Item, Trial, rank

# In the order in which a reader wants them; suites of other names follow.
SUITES = (
    "paper-table1",
    "real",
    "time",
    "ablation",
    "imperfection",
    "robust",
    "laws",
    "convergence",
    "sensitivity",
    "scaling",
    "runtime",
    "smoke",
)
NEEDED = ("score", "macro", "worst_decile", "train_seconds", "eval_seconds")


@dataclass(frozen=True)
class SuiteText:
    """What a suite says about itself.

    Args:
        title: What it is, in a few words.
        about: What it shows.
    """

    title: str = ""
    about: str = ""


@dataclass(frozen=True)
class Results:
    """The items of a store, or of a part of it.

    Args:
        path: Folder of the store.
        trials: Finished trials.
        gaps: Trials without a result.
        texts: What the suites say about themselves.
        called: What commands call the store; its folder, where nothing else is said.
    """

    path: Path
    trials: tuple[Trial, ...]
    gaps: tuple[Gap, ...]
    texts: Mapping[str, SuiteText] = field(default_factory=dict)
    called: str = ""

    @property
    def items(self) -> tuple[Item, ...]:
        """Trials and gaps."""
        return (*self.trials, *self.gaps)

    @cached_property
    def suites(self) -> tuple[str, ...]:
        """The suites that have something, in the order of reading."""
        here = {item.suite for item in self.items}
        return (*(name for name in SUITES if name in here), *sorted(here - set(SUITES)))

    @property
    def suite(self) -> str:
        """The first of them: the only one, in a part of a store."""
        return self.suites[0] if self.suites else ""

    def of(self, suite: str) -> "Results":
        """Return what one suite has."""
        return replace(
            self,
            trials=tuple(trial for trial in self.trials if trial.suite == suite),
            gaps=tuple(gap for gap in self.gaps if gap.suite == suite),
        )

    def command(self, suite: str) -> str:
        """Return what runs a suite; one that does not come with the package is named by its file."""
        name = suite if suite in (*suite_names(), "SUITE") else f"{suite}.toml"
        return f"thetafield bench {shlex.quote(name)} --store {shlex.quote(self.called or str(self.path))}"

    def history(self, trial: Trial) -> list[dict[str, Any]]:
        """Return the losses of a trial, one record per epoch; empty where none were kept."""
        path = self.path / "histories" / f"{trial.key}.json"
        content = _json(path) if path.exists() else []
        if not isinstance(content, list):
            raise _damaged(path)
        return content

    def look(self, trial: Trial) -> Look | None:
        """Return what figures show of a trial's field, if that was kept."""
        path = self.path / "looks" / f"{trial.key}.json"
        if not path.exists():
            return None
        try:
            return Look.of(_json(path))
        except (AttributeError, KeyError, TypeError, ValueError, zlib.error):
            raise _damaged(path) from None


def read_store(path: Path) -> Results:
    """Read all items of a store.

    The store says which trials make up each suite that was run (`suites/NAME.json`), with the labels that they have in
    it; one trial may stand in several. What is left of trials that a suite listed once, or of a method as it was once,
    is not shown. Results of suites that list nothing go by the suite that is stored with them.

    Raises:
        FormatError: There is no store, it is empty, or one of its files is damaged.
        StoreError: It is of another format.
    """
    path = Path(path)
    if not (path / "store.json").is_file():
        raise FormatError(
            f"{path} is not a store, since it has no store.json: `thetafield bench SUITE --store {path}`."
        )
    Store(path)  # refuses other formats
    outcomes: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder in ("absent", "failures", "results"):  # a result outweighs a failure, and both outweigh absence
        outcomes |= {file.stem: (folder, _outcome(file, folder)) for file in _files(path, folder)}
    if not outcomes:
        raise FormatError(f"{path} is an empty store: run `thetafield bench SUITE --store {path}` first.")
    texts, listed = _suites(path)
    there = {entry["key"] for _, entry in listed}
    unlisted = [content for key, (_, content) in outcomes.items() if key not in there]
    alone = sorted((content for content in unlisted if content.get("suite") not in texts), key=_rank)
    listed += [(str(content.get("suite") or "other"), content) for content in alone]
    items = [_item(suite, entry, at, outcomes) for at, (suite, entry) in enumerate(listed)]
    trials = tuple(item for item in items if isinstance(item, Trial))
    return Results(path, trials, tuple(item for item in items if isinstance(item, Gap)), texts)


def _files(path: Path, folder: str) -> list[Path]:
    return sorted(file for file in (path / folder).glob("*.json") if not file.name.startswith("."))


def _json(path: Path) -> Any:
    try:
        return read_json(path)
    except ValueError:
        raise _damaged(path) from None


def _damaged(path: Path) -> FormatError:
    return FormatError(f"{path} is damaged: delete it, and `thetafield bench` makes it again.")


def _outcome(path: Path, folder: str) -> dict[str, Any]:
    content = _json(path)
    if not isinstance(content, dict) or not _is_spec(content.get("spec")):
        raise _damaged(path)
    if folder == "results" and not _is_whole(content):
        raise _damaged(path)
    if folder == "results" and len(content.get("domains") or content["per_domain"]) != len(content["per_domain"]):
        raise _damaged(path)
    suite = content.get("suite") or ""
    if not isinstance(suite, str) or Path(suite).name != suite:  # it becomes part of the names of files
        raise _damaged(path)
    return content | {"key": path.stem}


def _is_whole(result: dict[str, Any]) -> bool:
    """Return whether a result has all numbers that every report needs."""
    errors = result.get("per_domain")
    if not (isinstance(errors, list) and errors and isinstance(result.get("metric"), str)):
        return False
    numbers = [*errors, *(result.get(name) for name in NEEDED)]
    return all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)


def _is_spec(spec: Any) -> bool:
    if not isinstance(spec, dict) or not isinstance(spec.get("seed"), int):
        return False
    return isinstance(spec.get("dataset"), str) and isinstance(spec.get("method"), str)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("key"), str) and _is_spec(entry.get("spec"))


def _suites(path: Path) -> tuple[dict[str, SuiteText], list[tuple[str, dict[str, Any]]]]:
    """Return what the suites say about themselves, and all trials that they list."""
    texts, listed = {}, []
    for file in _files(path, "suites"):
        content = _json(file)
        trials = content.get("trials") if isinstance(content, dict) else None
        if not isinstance(trials, list) or not all(map(_is_entry, trials)):
            raise _damaged(file)
        texts[file.stem] = SuiteText(content.get("title") or "", content.get("about") or "")
        listed += [(file.stem, entry) for entry in trials]
    return texts, listed


def _rank(content: Mapping[str, Any]) -> tuple[Any, ...]:
    return rank(content["spec"]["method"], content["spec"]["dataset"]), content["spec"]["seed"], content["key"]


def _item(suite: str, entry: Mapping[str, Any], position: int, outcomes: Mapping[str, Any]) -> Item:
    """Return one trial as it stands in a suite."""
    folder, content = outcomes.get(entry["key"], ("", {}))
    spec = {"dataset_options": {}, "options": {}, "tune": 0} | {k: v for k, v in entry["spec"].items() if v is not None}
    item = Item(entry["key"], suite, spec, entry.get("labels") or content.get("labels") or {}, position)
    if folder == "results":
        return Trial(**vars(item), result=content, command=content.get("command") or "")
    kind = {"": "missing", "failures": "failed"}.get(folder, content.get("kind", "data"))
    reason = _sentence(content.get("reason"), content.get("sentence"), "It has not been run yet.")
    return Gap(**vars(item), kind=kind, reason=reason)


def _sentence(*candidates: object) -> str:
    return " ".join(str(next(filter(None, candidates))).split())


def changed_suites(results: Results) -> dict[str, tuple[int, int]]:
    """Return how many trials suites of the package have got, and lost, since they were run here."""
    known: dict[str, set[str]] = {suite: set() for suite in results.suites if suite in suite_names()}
    for item in (*results.trials, *results.gaps):
        if item.suite in known:
            known[item.suite].add(item.key)
    today = {suite: {spec.key for spec in load_suite(suite).trials} for suite in known}
    counts = {suite: (len(today[suite] - keys), len(keys - today[suite])) for suite, keys in known.items()}
    return {suite: count for suite, count in counts.items() if any(count)}


def missing_suites(results: Results) -> list[str]:
    """Return the suites of the package that are not in the store; none for a store of somebody's own suites alone."""
    here = set(results.suites) & set(SUITES) - {"smoke"}
    return [name for name in SUITES if name not in results.suites and name != "smoke"] if here else []
