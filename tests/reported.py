"""A store as the bench writes it, of results that were made up, so that what a report says can be told by hand."""

import json

import numpy as np

from thetafield.bench.spec import TrialSpec
from thetafield.report.store.reading import read_store

LAWS = {"identity": 99.96, "associativity": 98.0, "invertibility": 99.0}


class Builder:
    """Writes a store as the bench does, from made-up results."""

    def __init__(self, path):
        self.path, self.suites = path, {}
        self.put("store.json", {"format": 1, "thetafield": "0.1.0"})

    def put(self, name, content):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))

    def listed(self, suite, dataset, method, seed, group="", **given):
        spec = TrialSpec.of(dataset, method, seed=seed, group=group or suite, **given)
        entry = {"key": spec.key, "spec": spec.record, "labels": spec.labels}
        self.suites.setdefault(suite, []).append(entry)
        self.put(
            f"suites/{suite}.json",
            {"suite": suite, "title": suite.title(), "about": f"About {suite}.", "trials": self.suites[suite]},
        )
        return spec, entry | {"suite": suite}

    def trial(self, suite, dataset, method, seed, errors, metric="error", history=None, extra=None, **given):
        spec, about = self.listed(suite, dataset, method, seed, **given)
        errors = np.asarray(errors, float)
        content = {
            "metric": metric,
            "score": float(errors.mean()),
            "macro": float(errors.mean()) + 1,
            "worst_decile": float(errors.max()),
            "per_domain": errors.tolist(),
            "laws": None,
            "relevance": {},
            "train_seconds": 10.0 + seed,
            "eval_seconds": 0.5,
            "options": dict(spec.options),
            "device": "a machine",
            "versions": {"torch": "2"},
        }
        content |= extra or {}
        self.put(f"results/{spec.key}.json", content | about | {"command": spec.command, "finished": "2025-11-15T20"})
        if history is not None:
            self.put(f"histories/{spec.key}.json", history)
        return spec

    def absent(self, suite, dataset, method, seed, kind, reason, **given):
        spec, about = self.listed(suite, dataset, method, seed, **given)
        self.put(f"absent/{spec.key}.json", about | {"kind": kind, "reason": reason})

    def failure(self, suite, dataset, method, seed, sentence, **given):
        spec, about = self.listed(suite, dataset, method, seed, **given)
        self.put(f"failures/{spec.key}.json", about | {"kind": "error", "sentence": sentence, "attempts": 2})

    def read(self):
        return read_store(self.path)


def table_one(builder):
    """Three methods on 2-Moons with means by hand, and a gap of every kind."""
    for seed, (erm, nda, ours) in enumerate([(30, 20, 4), (32, 24, 5), (34, 28, 6)]):
        for method, level in (("erm", erm), ("nda", nda), ("neurallio", ours)):
            builder.trial("paper-table1", "two-moons", method, seed, level + np.linspace(-1, 1, 20))
    return with_gaps(builder)


def with_gaps(builder):
    """Gaps of every kind beside what is there already."""
    for seed in range(3):
        for dataset, lack in (("two-moons", "has 2: scale, rotation"), ("mnist", "has 3: rotation, colour, occlusion")):
            reason = f"TKNets needs one ordered descriptor coordinate, but {dataset} {lack}."
            builder.absent("paper-table1", dataset, "tknets", seed, "needs", reason)
        builder.absent("paper-table1", "traffic", "erm", seed, "data", "traffic needs /data/flow.npy: get it.")
    builder.trial("paper-table1", "mnist", "erm", 0, [17.0, 19.0])
    builder.failure("paper-table1", "mnist", "erm", 1, "The loss is not finite: lower lr.")
    builder.listed("paper-table1", "mnist", "erm", 2)
    builder.listed("paper-table1", "mnist", "nda", 0)
    return builder.read().of("paper-table1")


def cell(table, row, column):
    """The cell of a row and a column by their titles."""
    position = [one.title for one in table.columns].index(column)
    return next(one for one in table.rows if one.title == row).cells[position]
