"""One epoch of `neurallio-paper` on 2-Moons against the same algorithm as nested loops with dense exponentials.

Run: .venv/bin/python benchmarks/epoch.py --out results/cpu/epoch.json
Both are timed in turn in one process; the ratio is what counts, since machines are noisy.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from thetafield import __version__
from thetafield.data import DescriptorScaler
from thetafield.datasets import DATASETS
from thetafield.files import write_json
from thetafield.memory import keep_freed_memory
from thetafield.methods.base import Problem
from thetafield.methods.neurallio_paper import ChartBatch, NeuralLioPaper
from thetafield.predictors import PREDICTORS
from thetafield.streams import seeded
from thetafield.testing.oracles import loop_loss


def build() -> NeuralLioPaper:
    """Return the method at its defaults: 50 domains, k = 5, all 1,000 samples of a domain."""
    data = DATASETS["two-moons"](0)
    scaler = DescriptorScaler.fit(data.train.z, data.train.descriptors)
    domains = replace(data.train, z=scaler(data.train.z))
    with seeded(0, "start"):
        predictor = PREDICTORS[data.predictor]((2,), 2, **data.predictor_options)
        return NeuralLioPaper(Problem(domains, predictor, "cross_entropy", 0))


def seconds(method: NeuralLioPaper, loss: Callable[[ChartBatch], dict[str, Tensor]], epoch: int) -> float:
    """Time one epoch, optimiser included."""
    (phase,) = method.phases()
    (player,) = phase.players
    optimiser = torch.optim.Adam(player.parameters, lr=player.lr, weight_decay=player.weight_decay, fused=True)
    started = time.perf_counter()
    for batch in phase.batches(epoch):
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(loss(batch).values())).sum().backward()
        optimiser.step()
    return time.perf_counter() - started


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    keep_freed_memory()
    fast, slow = build(), build()
    seconds(fast, fast.loss, 0)
    times: dict[str, list[float]] = {"vectorised": [], "loop": []}
    for repeat in range(arguments.repeats):
        times["loop"].append(seconds(slow, lambda batch: loop_loss(slow, batch), repeat))
        # Several fast epochs for one slow one, so that both are measured over comparable spans.
        times["vectorised"] += [seconds(fast, fast.loss, repeat) for _ in range(5)]
    vectorised, loop = (statistics.median(values) for values in times.values())
    content = {
        "command": "python benchmarks/epoch.py --out results/cpu/epoch.json",
        "threads": torch.get_num_threads(),
        "versions": {"thetafield": __version__, "torch": torch.__version__},
        "seconds": times,
        "figures": [
            {
                "name": "neurallio-paper, one 2-Moons epoch on the CPU",
                "value": vectorised,
                "unit": "s",
                "reference": loop,
                "ratio": loop / vectorised,
            }
        ],
    }
    print(f"loop {loop:.3f} s, vectorised {vectorised:.3f} s: {loop / vectorised:.1f} times faster")
    if arguments.out:
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
