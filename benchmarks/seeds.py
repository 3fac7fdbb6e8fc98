"""Several methods over several seeds of a dataset, one JSON file per method.

Run: python benchmarks/seeds.py two-moons --methods erm,neurallio --seeds 5 --device cuda --out results/two-moons
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from thetafield.bench import run_trial
from thetafield.data import DomainSet
from thetafield.datasets.base import Registered
from thetafield.errors import NeedError
from thetafield.evaluation import field_laws
from thetafield.fields.storage import load_model
from thetafield.files import write_json
from thetafield.options import parse_assignments
from thetafield.training.train import pick_device

LAWS = ("identity", "associativity", "invertibility")


def trial(work: tuple[str, str, int, str, dict[str, str], dict[str, str], int, int]) -> dict[str, Any]:
    """Run one trial in a scratch folder and measure the laws over all pairs of all its test domains."""
    dataset, method, seed, device, options, data_options, draws, folds = work
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        try:
            result = run_trial(
                dataset,
                method,
                seed=seed,
                out=out,
                options=options,
                dataset_options=data_options,
                tune_draws=draws,
                tune_folds=folds,
                device=device,
            )
        except NeedError as need:  # the table says N/A
            return {"method": method, "seed": seed, "needs": str(need)}
        if result["laws"]:
            model = load_model(out / "field").to(pick_device(device))
            data = Registered(dataset, data_options).build(seed)
            test = DomainSet.concatenate(list(data.test.values()))
            laws = field_laws(model, test.z, seed=seed)
            result["laws"] = asdict(laws) if laws else None
    print(f"{method} seed {seed}: {result['score']:.2f} in {result['train_seconds']:.1f} s", flush=True)
    return result


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and standard deviation over seeds."""

    def of(values: list[float]) -> dict[str, Any]:
        return {"mean": statistics.mean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}

    content = {key: of([r[key] for r in results]) for key in ("score", "macro", "worst_decile", "train_seconds")}
    content["groups"] = {g: of([r["groups"][g]["score"] for r in results]) for g in results[0]["groups"]}
    if results[0]["laws"]:
        content["laws"] = {law: of([r["laws"][law] for r in results]) for law in LAWS}
    return content


def main() -> None:
    """Run all trials, a few processes at a time, and store them by method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--methods", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="override a method's option")
    parser.add_argument(
        "--data-set", action="append", default=[], metavar="NAME=VALUE", help="an option of the dataset"
    )
    parser.add_argument("--tag", default="", help="what the files are called beside the method, for other options")
    parser.add_argument("--tune", type=int, default=0, help="settings to draw for each trial")
    parser.add_argument("--tune-folds", type=int, default=1, help="how many times domains are held out for it")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    methods = arguments.methods.split(",")
    options, data_options = parse_assignments(arguments.set), parse_assignments(arguments.data_set)
    trials = [(m, seed) for m in methods for seed in range(arguments.seeds)]
    work = [
        (arguments.dataset, m, seed, arguments.device, options, data_options, arguments.tune, arguments.tune_folds)
        for m, seed in trials
    ]
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.processes, maxtasksperchild=4) as pool:
        results = list(pool.imap(trial, work))
    command = "python " + " ".join(sys.argv)
    for method in methods:
        own = [r for r in results if r["method"] == method]
        if "needs" in own[0]:
            print(f"{method} N/A: {own[0]['needs']}")
            continue
        content = {"command": command, "summary": summary(own), "results": own}
        write_json(arguments.out / f"{method}{arguments.tag}.json", content)
        print(method, json.dumps(content["summary"]["score"]), json.dumps(content["summary"].get("laws")))


if __name__ == "__main__":
    main()
