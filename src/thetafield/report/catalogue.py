"""What there is: datasets, methods and predictors with their needs, references and options."""

import inspect
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from thetafield.datasets.base import DATASETS
from thetafield.errors import OptionError, closest
from thetafield.methods.base import METHODS, Needs
from thetafield.options import schema
from thetafield.predictors.base import PREDICTORS

KINDS = ("datasets", "methods", "predictors")


def catalogue(kind: str = "all") -> dict[str, list[dict[str, Any]]]:
    """Return the entries of one kind, or of all, as plain values."""
    if kind not in (*KINDS, "all"):
        raise OptionError(f"There is no kind {kind!r}; {closest(kind, [*KINDS, 'all'])}")
    content: dict[str, list[dict[str, Any]]] = {}
    if kind in ("datasets", "all"):
        content["datasets"] = [_entry(name, entry) for name, entry in DATASETS]
    if kind in ("methods", "all"):
        content["methods"] = [
            _entry(name, entry)
            | {
                "reference": entry.reference,
                "needs": _needs(entry.needs),
                "space": {option: str(part) for option, part in entry.space.items()},
                "choices": {
                    option: [*entry.foundations.get(option, ()), *entry.choices.get(option, ())]
                    for option in {**entry.foundations, **entry.choices}
                },
            }
            for name, entry in METHODS
        ]
    if kind in ("predictors", "all"):
        content["predictors"] = [_entry(name, entry) for name, entry in PREDICTORS]
    return content


def _entry(name: str, owner: Callable) -> dict[str, Any]:
    summary = (inspect.getdoc(owner) or "").split("\n\n")[0].replace("\n", " ")
    options = {key: default for key, (_, default) in schema(owner).items()}
    return {"name": name, "summary": summary, "options": options}


def _needs(needs: Needs) -> list[str]:
    named = {"descriptor": "descriptors", "ordered": "one ordered descriptor", "classification": "classes"}
    listed = [words for key, words in named.items() if getattr(needs, key)]
    return [*listed, f"{needs.min_domains} domains"] if needs.min_domains > 1 else listed


def print_catalogue(content: dict[str, list[dict[str, Any]]]) -> None:
    """Print each kind as a list: name, what it is, needs and reference, options with their defaults."""
    console = Console(highlight=False)
    for kind, entries in content.items():
        console.print(f"\n[bold underline]{kind}[/]")
        for entry in entries:
            console.print(f"[bold cyan]{entry['name']}[/]  {escape(entry['summary'])}")
            if kind == "methods":
                needs = ", ".join(entry["needs"]) or "nothing"
                console.print(Padding(escape(f"{entry['reference']}; needs {needs}"), (0, 0, 0, 4)), style="dim")
            options = "  ".join(f"{key}={_word(value)}" for key, value in entry["options"].items())
            console.print(Padding(escape(options), (0, 0, 0, 4)), style="green")
            if kind == "methods":
                space = "; ".join(f"{option} {part}" for option, part in entry["space"].items())
                console.print(Padding(escape(f"--tune draws {space}"), (0, 0, 0, 4)), style="dim green")
            if entry.get("choices"):
                tried = "; ".join(f"{name} {', '.join(map(_word, o))}" for name, o in entry["choices"].items())
                words = f"held-out training domains choose, beside the defaults: {tried} (select=false switches it off)"
                console.print(Padding(escape(words), (0, 0, 0, 4)), style="dim green")


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool | None) else str(value)
