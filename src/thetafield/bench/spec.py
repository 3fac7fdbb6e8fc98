"""What a trial is before it runs: all that determines its result, and the key that stands for it."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thetafield.bench.job import LOOK
from thetafield.bench.trial import run_trial
from thetafield.datasets.base import DATASETS, Registered
from thetafield.errors import OptionError
from thetafield.evaluation.looks import look_at
from thetafield.fields.model import FieldModel
from thetafield.fields.storage import read_model
from thetafield.files import plain, write_json
from thetafield.methods.base import METHODS, as_today
from thetafield.options import checked, schema

FORMAT = 2  # of results: where they come to hold or to mean something else, every trial has another key


@dataclass(frozen=True)
class TrialSpec:
    """One dataset, one method and one seed, in plain JSON values. Made by :meth:`of`, which checks them.

    Labels say where a trial stands in tables and figures. They do not enter its key, so two suites share a trial.

    Args:
        dataset: Registry name of the dataset.
        dataset_options: All of its options.
        method: Registry name of the method.
        options: Those of its options that are given; others are its defaults, or left to the data.
        seed: Root seed.
        tune: Settings to draw before the trial.
        tune_folds: How many times training domains are held out for them.
        group: Label of the part of a suite.
        dataset_label: Label of the dataset under its options.
        method_label: Label of the method under its options.
        keep: Whether the trained field is kept, and with it what figures show of it.

    Example:
        >>> spec = TrialSpec.of("two-moons", "erm", seed=3, options={"steps": "500"})
        >>> spec.options, spec.method_label, len(spec.key)
        ({'steps': 500}, 'erm steps=500', 16)
        >>> spec.command
        'thetafield train two-moons erm --seed 3 --set steps=500'
    """

    dataset: str
    dataset_options: Mapping[str, Any]
    method: str
    options: Mapping[str, Any]
    seed: int
    tune: int = 0
    tune_folds: int = 1
    group: str = field(default="", compare=False)
    dataset_label: str = field(default="", compare=False)
    method_label: str = field(default="", compare=False)
    keep: bool = field(default=False, compare=False)

    @classmethod
    def of(
        cls,
        dataset: str,
        method: str,
        *,
        seed: int,
        dataset_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        tune: int = 0,
        tune_folds: int = 1,
        group: str = "",
        dataset_label: str | None = None,
        method_label: str | None = None,
        keep: bool = False,
    ) -> "TrialSpec":
        """Return a trial with names and options checked against the registries; labels are made where none is given.

        Raises:
            OptionError: There is no such dataset, method or option, or a value is ill-typed.
        """
        build, entry = DATASETS[dataset], METHODS[method]
        full_data = checked(build, dataset_options or {}, dataset)
        full = checked(entry, options or {}, method)
        given = {name: full[name] for name in options or {}}
        if tune and not set(entry.space) - set(given):
            raise OptionError(f"{entry.title} has nothing left to tune: set fewer options, or leave out the tuning.")
        given_data = {name: full_data[name] for name in dataset_options or {}}
        return cls(
            dataset=dataset,
            dataset_options=plain(full_data),
            method=method,
            options=plain(given),
            seed=seed,
            tune=tune,
            tune_folds=tune_folds if tune else 1,  # of no tuning there are no folds
            group=group,
            dataset_label=_label(dataset, given_data) if dataset_label is None else dataset_label,
            method_label=_label(method, given) + (" tuned" if tune else "") if method_label is None else method_label,
            keep=keep,
        )

    @property
    def record(self) -> dict[str, Any]:
        """All that determines the result, as it is stored."""
        names = ("dataset", "dataset_options", "method", "options", "seed", "tune", "tune_folds")
        return {name: getattr(self, name) for name in names}

    @property
    def labels(self) -> dict[str, Any]:
        """What does not determine it."""
        return {name: getattr(self, name) for name in ("group", "dataset_label", "method_label", "keep")}

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits for the record, the format, and method and dataset as they are today."""
        today = as_today(self.method, self.options)
        if revision := DATASETS.revision(self.dataset):
            today["dataset_revision"] = revision
        words = json.dumps(
            self.record | today | {"format": FORMAT}, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return hashlib.sha256(words.encode()).hexdigest()[:16]

    @property
    def command(self) -> str:
        """The command that runs this trial alone."""
        words = ["thetafield", "train", self.dataset, self.method, "--seed", str(self.seed)]
        defaults = plain({name: default for name, (_, default) in schema(DATASETS[self.dataset]).items()})
        for name, value in self.dataset_options.items():
            if value != defaults[name]:
                words += ["--data-set", f"{name}={_typed(value)}"]
        for name, value in self.options.items():
            words += ["--set", f"{name}={_typed(value)}"]
        if self.tune:
            words += ["--tune", str(self.tune), "--tune-folds", str(self.tune_folds)]
        return shlex.join(words)

    @property
    def expected(self) -> float | None:
        """Nothing: how long a trial takes is learned from others of its kind."""
        return None

    def run(self, out: Path, *, device: str, checkpoint_every: float, crowded: bool = False) -> dict[str, Any]:
        """Run the trial in a folder, going on from what an earlier attempt left there."""
        result = run_trial(
            self.dataset,
            self.method,
            seed=self.seed,
            out=out,
            options=self.options,
            dataset_options=self.dataset_options,
            tune_draws=self.tune,
            tune_folds=self.tune_folds,
            device=device,
            resume=True,
            checkpoint_every=checkpoint_every,
            crowded=crowded,
        )
        if self.keep:
            self._look(out)
        return result

    def _look(self, out: Path) -> None:
        """Write down what figures show of the trained field, where there are any of its data."""
        model = read_model(out / "field")
        if isinstance(model, FieldModel):
            look = look_at(model, Registered(self.dataset, self.dataset_options).build(self.seed), self.seed)
            if look is not None:
                write_json(out / LOOK, look.record())


def _label(name: str, given: Mapping[str, Any]) -> str:
    return " ".join([name, *(f"{option}={_typed(value)}" for option, value in given.items())])


def _typed(value: Any) -> str:
    """Return a value as it is typed on the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(_typed, value))
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
