"""One trial of a suite, run or not, and how tables call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from thetafield.datasets.base import DATASETS
from thetafield.methods.base import METHODS
from thetafield.options import schema

# The order of the paper's table, then what it does not have, then the ablations, then ours.
METHOD_ORDER = (
    *("erm", "irm", "vrex", "groupdro", "mixup", "dann", "mldg", "cdann", "urm", "erm-d", "nda", "cida"),
    *("tknets", "drain", "koodos", "film", "hypernet", "interpolate", "trees-x", "trees"),
)
LAST_METHODS = ("neurallio-plain", "neurallio-nolie", "neurallio-paper", "neurallio")
# What the datasets are called, the paper's first.
DATASET_TITLES = {
    "two-moons": "2-Moons",
    "mnist": "MNIST",
    "fmow": "fMoW",
    "arxiv": "ArXiv",
    "yearbook": "Yearbook",
    "traffic": "Traffic",
    "two-moons-time": "2-Moons in time",
    "two-moons-wide": "2-Moons under heads of any size",
    "eurosat": "EuroSAT",
    "arxiv-titles": "arXiv titles",
    "weather-aus": "Rain in Australia",
    "atmosphere": "Surface temperature",
    "camels": "CAMELS",
    "pedestrians": "Pedestrians",
    "metr-la": "METR-LA",
    "tpt48": "TPT-48",
    "elec2": "Elec2",
    "housing": "Housing",
    "circle": "Circle",
}
# Suites whose tables are parted as the paper parts its own, where they do not part them themselves.
PARTED = ("paper-table1", "real", "time")


@cache
def _method_defaults(name: str) -> dict[str, Any]:
    return {option: default for option, (_, default) in schema(METHODS[name]).items()} if name in METHODS else {}


@cache
def _dataset_defaults(name: str) -> dict[str, Any]:
    if name not in DATASETS:
        return {}
    return {option: _plain(default) for option, (_, default) in schema(DATASETS[name]).items()}


def _plain(value: Any) -> Any:
    """Return a default as it is stored: JSON has lists for tuples."""
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Item:
    """One trial of a suite.

    Args:
        key: Its name in the store.
        suite: The suite that asks for it.
        spec: Dataset, method, their options, seed and tuning.
        labels: How the suite calls its group, dataset and method.
        position: Where it stands in the suite.
    """

    key: str
    suite: str
    spec: Mapping[str, Any]
    labels: Mapping[str, Any]
    position: int

    @property
    def dataset(self) -> str:
        """Registry name of the dataset."""
        return self.spec["dataset"]

    @property
    def method(self) -> str:
        """Registry name of the method."""
        return self.spec["method"]

    @property
    def group(self) -> str:
        """The part of a table that its row stands in; empty where the suite has no parts."""
        group = self.labels.get("group") or self.suite
        if group != self.suite:
            return " ".join(str(group).split()).capitalize()
        if self.suite not in PARTED or self.method not in METHODS:
            return ""
        return "Descriptor-aware" if METHODS[self.method].needs.descriptor else "Descriptor-agnostic"

    @property
    def column(self) -> str:
        """How tables call the dataset; a split is a repetition, and left out of a label that was made of options."""
        label = str(self.labels.get("dataset_label") or self.dataset)
        if label.startswith(f"{self.dataset} "):
            label = " ".join(word for word in label.split() if not word.startswith("split="))
        return _titled(label, self.dataset, DATASET_TITLES.get(self.dataset, self.dataset))

    @property
    def row(self) -> str:
        """How tables call the method."""
        title = METHODS[self.method].title if self.method in METHODS else self.method
        return _titled(self.labels.get("method_label"), self.method, title)

    @property
    def repetition(self) -> tuple[int, Any]:
        """Seed and split: what differs between the repetitions of one experiment."""
        return self.spec["seed"], self.spec["dataset_options"].get("split")

    @property
    def occasion(self) -> str:
        """Seed and split in words."""
        seed, split = self.repetition
        return f"seed {seed}" if split is None else f"split {split}, seed {seed}"

    def option(self, name: str) -> Any:
        """Return the value of an option of the method, as given or by default; None where there is no such option."""
        return self.spec["options"].get(name, _method_defaults(self.method).get(name))

    def dataset_option(self, name: str) -> Any:
        """Return the value of an option of the dataset, as given or by default; None where there is no such option."""
        return self.spec["dataset_options"].get(name, _dataset_defaults(self.dataset).get(name))

    @property
    def altered(self) -> dict[str, Any]:
        """The options of the dataset that are not its defaults; a split is a repetition and no option."""
        known = _dataset_defaults(self.dataset)
        return {
            name: value
            for name, value in self.spec["dataset_options"].items()
            if name != "split" and (name not in known or value != known[name])
        }


@dataclass(frozen=True)
class Trial(Item):
    """A finished trial.

    Args:
        result: What `run_trial` returned.
        command: What runs it alone.
    """

    result: Mapping[str, Any]
    command: str


@dataclass(frozen=True)
class Gap(Item):
    """A trial without a result.

    Args:
        kind: "needs" where the data lack what the method declares, "data" where they are absent, "failed", or
            "missing" where it has not been run.
        reason: The sentence that says so.
    """

    kind: str
    reason: str


def in_order(repetition: tuple[int, Any]) -> tuple[int, bool, Any]:
    """Return what repetitions are ordered by: the seed, then the split, numbers before names.

    >>> sorted([(7, 10), (7, 9), (0, None), (7, "north")], key=in_order)
    [(0, None), (7, 9), (7, 10), (7, 'north')]
    """
    seed, split = repetition
    named = isinstance(split, str)
    return seed, named, split if split is not None else 0


def rank(method: str, dataset: str) -> tuple[int, str, int, str]:
    """Return what trials are ordered by where no suite orders them: the paper's methods and datasets first, ours last.

    >>> sorted(["neurallio", "erm", "wonder", "neurallio-paper", "nda"], key=lambda method: rank(method, "mnist"))
    ['erm', 'nda', 'wonder', 'neurallio-paper', 'neurallio']
    """
    datasets = list(DATASET_TITLES)
    known = {name: i for i, name in enumerate(METHOD_ORDER)} | {name: 99 + i for i, name in enumerate(LAST_METHODS)}
    return known.get(method, 98), method, datasets.index(dataset) if dataset in datasets else 98, dataset


def _titled(label: Any, name: str, title: str) -> str:
    """Return a suite's label; one that a suite has left to be made of name and options begins with the title instead.

    >>> [_titled(label, "erm", "ERM") for label in ("erm steps=500", "erm, tuned", "Ours", "erm-like", None)]
    ['ERM, steps=500', 'ERM, tuned', 'Ours', 'erm-like', 'ERM']
    """
    words = " ".join(str(label or name).split())
    if words == name:
        return title
    rest = words.removeprefix(name)
    return f"{title}, {rest.lstrip(', ')}" if rest != words and rest[:1] in (" ", ",") else words
