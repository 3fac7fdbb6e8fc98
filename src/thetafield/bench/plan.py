"""What of a suite is there and what is missing: which trials are meant, and which of them are to be run."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from thetafield.bench.job import Job
from thetafield.bench.spec import TrialSpec
from thetafield.errors import OptionError, closest

# Where a bare word is looked for, in this order; the words of a trial that a field means.
FIELDS = {
    "dataset": lambda spec: (spec.dataset, spec.dataset_label),
    "method": lambda spec: (spec.method, spec.method_label),
    "group": lambda spec: (spec.group,),
    "seed": lambda spec: (str(spec.seed),),
    "key": lambda spec: (spec.key,),
}


@dataclass(frozen=True)
class Plan:
    """Trials with what the store holds of them.

    Args:
        trials: The trials, each once.
        states: By key: "done", "needs" (the method does not apply), "data" (files are absent) or "failed"; a key that
            is not there is missing.
    """

    trials: tuple[Job, ...]
    states: Mapping[str, str]

    def state(self, spec: Job) -> str:
        """Return how a trial stands."""
        return self.states.get(spec.key, "missing")

    def counts(self) -> dict[str, int]:
        """Return how many trials stand how."""
        found = Counter(map(self.state, self.trials))
        return {"trials": len(self.trials)} | {
            word: found[word] for word in ("done", "missing", "failed", "needs", "data")
        }

    def todo(self, retry: bool = False, limit: int | None = None) -> list[Job]:
        """Return what to run: what is missing, then, on request, what failed, then what lacked its data the last time.

        What never ran comes first, so that a limit gets on: data that are absent may stay so.
        """
        wanted = ("missing", *(("failed",) if retry else ()), "data")
        found = [spec for spec in self.trials if self.state(spec) in wanted]
        return sorted(found, key=lambda spec: wanted.index(self.state(spec)))[:limit]


def once(trials: Iterable[TrialSpec]) -> tuple[TrialSpec, ...]:
    """Return every trial once, with the labels it has first; its field is kept if any of its places asks for it."""
    found: dict[str, TrialSpec] = {}
    for spec in trials:
        first = found.setdefault(spec.key, spec)
        if spec.keep and not first.keep:
            found[spec.key] = replace(first, keep=True)
    return tuple(found.values())


def matching(trials: Sequence[TrialSpec], patterns: Sequence[str]) -> list[TrialSpec]:
    """Return the trials that patterns mean, such as `neurallio`, `dataset=two-moons`, `seed=0` or `method=neurallio*`.

    A word without a field means the first of dataset, method, group, seed and key in which it occurs. Patterns of one
    field widen each other, those of several fields narrow each other.

    Raises:
        OptionError: There is no such field, or a pattern matches nothing.
    """
    wanted: dict[str, list[str]] = {}
    for pattern in patterns:
        field, equals, value = pattern.partition("=")
        # A label may hold an equals sign too.
        named = bool(equals) and not any(pattern in words(spec) for words in FIELDS.values() for spec in trials)
        if named and field not in FIELDS:
            raise OptionError(f"--only has no field {field!r}; {closest(field, FIELDS)}")
        searched, value = ([field], value) if named else (list(FIELDS), pattern)
        hit = next((name for name in searched if any(_matches(spec, name, value) for spec in trials)), None)
        if hit is None:
            known = {word for name in searched[:3] for spec in trials for word in FIELDS[name](spec)[:1]}
            raise OptionError(f"No trial of the suite matches --only {pattern}; {closest(value, known)}")
        wanted.setdefault(hit, []).append(value)
    found = [
        spec
        for spec in trials
        if all(any(_matches(spec, field, value) for value in values) for field, values in wanted.items())
    ]
    if not found:
        raise OptionError(f"No trial of the suite matches all of --only {', --only '.join(patterns)}: leave one out.")
    return found


def _matches(spec: TrialSpec, field: str, value: str) -> bool:
    words: Any = FIELDS[field](spec)
    return any(fnmatchcase(word, value) for word in words)
