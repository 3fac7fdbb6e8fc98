"""The values that the paper prints, to stand beside ours."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from thetafield.report.store.items import Item

FAMILY = "neurallio"  # the paper's own method, and ours, which is meant to do better
LAWS = ("identity", "associativity", "invertibility")


@dataclass(frozen=True)
class Printed:
    """A value as the paper prints it.

    Args:
        text: Mean and standard deviation, or a word such as N/A.
        mean: The mean; None where there is none.
        std: The standard deviation, if one is printed.

    >>> Printed.of("3.2 ± 1.2")
    Printed(text='3.2 ± 1.2', mean=3.2, std=1.2)
    """

    text: str
    mean: float | None
    std: float | None

    @classmethod
    def of(cls, text: str) -> "Printed":
        """Read a value off its print."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?", text)
        mean, std = found.groups() if found else (None, None)
        return cls(text, None if mean is None else float(mean), None if std is None else float(std))


@cache
def paper() -> Mapping[str, Any]:
    """Return all that was transcribed, table by table."""
    source = files("thetafield.report.store").joinpath("paper.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))


def printed_score(item: Item) -> Printed | None:
    """Return the paper's value for the experiment of an item, if it has one.

    Only the suites that repeat a table of the paper have any, and only on its data as they are: the paper has no value
    for other numbers of training domains.
    """
    if item.altered:
        return None
    row = FAMILY if is_ours(item.method) else item.method
    table, row = {"paper-table1": ("main", row), "ablation": ("ablation", ablation(item))}.get(item.suite, ("", ""))
    text = paper().get(table, {}).get(item.dataset, {}).get(row)
    return None if text in (None, "-") else Printed.of(text)


def printed_seconds(item: Item, name: str) -> Printed | None:
    """Return the paper's training or testing time, which it has for Yearbook."""
    row = FAMILY if is_ours(item.method) else item.method
    text = paper()["runtime"].get(row, {}).get(name) if item.dataset == "yearbook" else None
    return None if text is None else Printed.of(text)


def printed_law(item: Item, law: str) -> Printed | None:
    """Return the paper's cosine of a law, which it has for its method on 2-Moons."""
    has = item.dataset == "two-moons" and is_whole(item) and law in LAWS
    return Printed.of(paper()["laws"][law]) if has else None


def is_ours(method: str) -> bool:
    """Say whether a method stands where the paper's table says "NeuralLio (Ours)"; its ablations do not."""
    return method in (FAMILY, f"{FAMILY}-paper")


def is_whole(item: Item) -> bool:
    """Say whether an item is one of ours with nothing taken from it; more generators and the gate take nothing."""
    altered = {name for name, value in item.spec["options"].items() if (name, value) != ("gate", True)}
    return is_ours(item.method) and altered <= {"num_generators"}


def ablation(item: Item) -> str:
    """Return which line of the paper's ablation an item repeats; nothing where it is none of them.

    The paper's own whole has a gate everywhere but on 2-Moons, where it lists none.
    """
    if item.method in (f"{FAMILY}-plain", f"{FAMILY}-nolie"):
        return item.method.removeprefix(f"{FAMILY}-")
    if item.method == f"{FAMILY}-paper" and item.option("charts") is False:
        return "no-chart"
    if item.method == f"{FAMILY}-paper" and item.option("gate") is False and item.dataset != "two-moons":
        return "no-gate"
    return "whole" if is_whole(item) else ""
