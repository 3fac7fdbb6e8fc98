"""The transfer metric of many domains: base, probes, metric, charts and one epoch.

Run: python benchmarks/metric.py 100000 --device cuda --out results/h200/metric.json
"""

import argparse
import sys
import time
from pathlib import Path

import torch

from thetafield.data.domains import DomainSet
from thetafield.files import write_json
from thetafield.training.fit import Progress
from thetafield.training.train import device_name, pick_device, train_field

SAMPLES, COORDINATES = 16, 6  # the first coordinate turns the boundary, the others say nothing


def domains(count: int) -> DomainSet:
    """Return domains whose boundary turns with the first coordinate of z."""
    stream = torch.Generator().manual_seed(0)
    z = torch.rand(count, COORDINATES, generator=stream)
    x = torch.randn(count, SAMPLES, 2, generator=stream)
    angle = (3.14 * z[:, 0])[:, None]
    y = (x[..., 0] * angle.cos() + x[..., 1] * angle.sin() > 0).long()
    rows = torch.arange(count).repeat_interleave(SAMPLES)
    return DomainSet.from_arrays(
        x.flatten(0, 1).numpy(), y.flatten().numpy(), domain=rows.numpy(), z=z.numpy(), classification=True
    )


def main() -> None:
    """Train once and say when each phase ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    data, ended = domains(arguments.count), {}
    started = time.perf_counter()

    def report(progress: Progress) -> None:
        ended[progress.phase] = round(time.perf_counter() - started, 1)

    trained = train_field(
        data,
        "neurallio",
        seed=0,
        options={"epochs": 1, "samples": SAMPLES, "select": False},
        predictor_options={"hidden": (32, 32)},
        device=arguments.device,
        report=report,
    )
    content = {
        "command": "python " + " ".join(sys.argv),
        "device": device_name(pick_device(arguments.device)),
        "domains": arguments.count,
        "seconds": round(time.perf_counter() - started, 1),
        "phases ended after": ended,
        "relevance": trained.model.relevance(),
    }
    print(content)
    if arguments.out:
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
