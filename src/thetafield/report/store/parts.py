"""What each part of a method brings on each dataset, as the held-out training domains of its choices told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from thetafield.methods.base import METHODS
from thetafield.report.store.pairing import signed
from thetafield.report.store.paper import FAMILY
from thetafield.report.store.reading import Results
from thetafield.report.store.table import Cell, Column, Notes, Row, Table

Tried = Mapping[str, Any]  # a candidate of a choice, as results hold it


def part_table(results: Results) -> Table:
    """Return how the error on held-out training domains changes with each part, dataset by dataset."""
    heads: list[tuple[Column, Callable[[Sequence[Tried]], float | None]]] = [
        (Column("Best base", "instead of the pooled one, both alone", ""), _best_base),
        (Column("Charts", "on the pooled base", ""), lambda tried: _charts(tried, False)),
        (Column("Charts", "on the best base", ""), lambda tried: _charts(tried, True)),
        (Column("No base", "instead of the best one", ""), lambda tried: _without(tried, "base", "none")),
        (Column("No metric", "", ""), lambda tried: _without(tried, "metric", False)),
        (Column("Frozen backbone", "", ""), lambda tried: _without(tried, "freeze", True)),
        (Column("10 neighbours", "instead of 5 or fewer", ""), lambda tried: _without(tried, "neighbours", 10)),
        (Column("Latent of 16", "instead of 32", ""), lambda tried: _without(tried, "latent_dim", 16)),
        (Column("All epochs", "instead of a third", ""), _at_length),
    ]
    by_data: dict[str, list[Sequence[Tried]]] = {}
    for trial in results.trials:
        if trial.result.get("choice"):
            by_data.setdefault(trial.column, []).append(trial.result["choice"]["candidates"])
    notes = Notes()
    rows = []
    for name, choices in by_data.items():
        found = [[value for tried in choices if (value := read(tried)) is not None] for _, read in heads]
        rows.append(Row(name, tuple(_cell(values, notes) for values in found)))
    return Table(
        name=f"{results.suite}-parts",
        title="What each part brings",
        head="Data",
        columns=tuple(column for column, _ in heads),
        rows=tuple(rows),
        notes=notes.texts,
        about=(
            "Change of the error on held-out training domains, in %, as the choices inside NeuralLio found it, with a "
            "third of the epochs where there are 24 domains or more: below zero is better. A part that costs nothing "
            "to leave out brings nothing there. Mean ± standard deviation over repetitions."
        ),
        command=results.command(results.suite),
    )


def _cell(values: Sequence[float], notes: Notes) -> Cell:
    if not values:
        return Cell(
            word="–",
            notes=(notes.add("Not tried there: it was not up for choice, or there is nothing to compare it with."),),
        )
    cell = Cell.of(values, decimals=1)
    spread = "" if cell.spread is None else f" ± {cell.spread:.1f}"
    return replace(cell, word=f"{signed(fmean(values), 1)}{spread}")


def _best_base(tried: Sequence[Tried]) -> float | None:
    """Return what the best base does beside the default one, both without charts."""
    alone = [one for one in tried if one["options"].get("epochs") == 0 and one["score"] is not None]
    default = next((one for one in alone if not _start(one)), None)
    return None if default is None or len(alone) == 1 else _change(_best(alone), default)


def _charts(tried: Sequence[Tried], chosen: bool) -> float | None:
    """Return what charts add to the default base, or to the chosen one."""
    alone = {_start(one): one for one in tried if one["options"].get("epochs") == 0}
    for one in tried:
        options = one["options"]
        if options.get("epochs") == 0 or _rest(one) or bool(_start(one)) != chosen:
            continue
        if _start(one) in alone:
            return _change(one, alone[_start(one)])
    return None


def _without(tried: Sequence[Tried], name: str, value: object) -> float | None:
    """Return what an option's other value does beside the best setting that differs from it in that alone."""
    for one in tried:
        if one["options"].get("epochs") == 0 or one["options"].get(name) != value:
            continue
        beside = [other for other in tried if other is not one and _less(other, name) == _less(one, name)]
        return _change(one, best) if (best := _best(beside)) else None
    return None


def _at_length(tried: Sequence[Tried]) -> float | None:
    """Return what all of the epochs do beside a third of them, where they were tried at the end."""
    last = tried[-1]
    beside = [
        one for one in tried[:-1] if one["options"].get("epochs") and _less(one, "epochs") == _less(last, "epochs")
    ]
    return _change(last, beside[0]) if beside else None


def _less(one: Tried, name: str) -> dict[str, Any]:
    return {key: value for key, value in one["options"].items() if key != name}


def _start(one: Tried) -> tuple[tuple[str, Any], ...]:
    """Return what it sets of what training starts from."""
    return tuple((name, one["options"][name]) for name in METHODS[FAMILY].foundations if name in one["options"])


def _rest(one: Tried) -> bool:
    """Return whether it sets anything of what is chosen on top of that."""
    entry = METHODS[FAMILY]
    return any(name in one["options"] for name in entry.choices if name not in entry.foundations)


def _best(tried: Sequence[Tried]) -> Tried | None:
    """Return the best of those that were tried on all folds: others were given up."""
    most = max((one["folds"] for one in tried), default=0)
    whole = [one for one in tried if one["folds"] == most and one["score"] is not None]
    return min(whole, key=lambda one: one["score"], default=None)


def _change(one: Tried | None, other: Tried) -> float | None:
    """Return by how many % an error is above another, over the domains that both were tried on."""
    both = 0 if one is None else min(len(one["per_domain"]), len(other["per_domain"]))
    if one is None or not both or not (before := fmean(other["per_domain"][:both])):
        return None
    return 100 * (fmean(one["per_domain"][:both]) / before - 1)
