"""NeuralLio on MNIST: seconds of a whole training, error, and peak memory, with the paper's coder and the lean one.

Run: python benchmarks/mnist.py --out results/h200/mnist.json
The setting is that of the paper's head and of charts in which rotation weighs ten times as much as colour and
occlusion (k = 10, 256 samples of each domain in a step, dropout 0.7, 300 epochs): the charts are given, not learned,
and every domain starts from a common random start.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

from thetafield import __version__
from thetafield.datasets.base import Registered
from thetafield.evaluation.scores import evaluate
from thetafield.files import write_json
from thetafield.training.train import device_name, pick_device, train_field

OPTIONS = {"neighbours": 10, "samples": 256, "base": "none", "chart_weights": (1.0, 0.1, 0.1)}


def run(coder: str, seed: int, options: dict[str, Any], dropout: float, device: torch.device) -> dict[str, Any]:
    """Train once and measure."""
    data = Registered("mnist").build(seed)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    trained = train_field(
        data.train,
        "neurallio",
        seed=seed,
        options={**OPTIONS, **options, "coder": coder},
        predictor=data.predictor,
        predictor_options={"dropout": dropout},
        device=str(device),
    )
    peak = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else None
    score = evaluate(trained.model, data.test["random"]).score
    print(f"{coder} {options} seed {seed}: {score:.2f} % in {trained.seconds:.1f} s, peak {peak} GB", flush=True)
    return {"coder": coder, "seed": seed, "error": score, "seconds": trained.seconds, "peak_gb": peak}


def main() -> None:
    """Train with both coders and store the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coders", default="lean,perceptron")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--block", type=int, default=25)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.7)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    device = pick_device(arguments.device)
    options = {"epochs": arguments.epochs, "block": arguments.block, "lr": arguments.lr}
    run(arguments.coders.split(",")[0], 0, {**options, "epochs": 3}, arguments.dropout, device)  # sets the libraries up
    results = [
        run(coder, seed, options, arguments.dropout, device)
        for coder in arguments.coders.split(",")
        for seed in range(arguments.seeds)
    ]
    if arguments.out:
        summary = {
            coder: {
                key: statistics.mean(r[key] for r in results if r["coder"] == coder) for key in ("error", "seconds")
            }
            for coder in arguments.coders.split(",")
        }
        content = {
            "command": "python " + " ".join(sys.argv),
            "device": device_name(device),
            "versions": {"thetafield": __version__, "torch": torch.__version__},
            "options": {key: list(v) if isinstance(v, tuple) else v for key, v in {**OPTIONS, **options}.items()},
            "dropout": arguments.dropout,
            "summary": summary,
            "results": results,
        }
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
