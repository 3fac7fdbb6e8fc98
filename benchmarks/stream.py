"""Draws from domains on the disk: how many a second, and how much memory.

Run: .venv/bin/python benchmarks/stream.py --out results/cpu/stream.json
100,000 domains × 1,000 samples × 8 half floats (1.6 GB and 0.8 GB of labels) are written piece by piece, opened as a
memory map, and drawn from: 64 domains × 128 samples a draw. The reference holds the same draws of a set in memory. Each
is measured in a process of its own, since what the writer has freed would count as its memory.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thetafield import __version__
from thetafield.data.domains import DomainSet
from thetafield.data.stored import open_domains, store_domains
from thetafield.files import write_json
from thetafield.streams import torch_stream


def pieces(num_domains: int, samples: int, width: int, size: int = 1000) -> Iterator[DomainSet]:
    """Yield domains a thousand at a time."""
    for start in range(0, num_domains, size):
        count = min(size, num_domains - start)
        stream = torch_stream(0, "stream", start)
        yield DomainSet(
            x=torch.rand(count * samples, width, generator=stream).half(),
            y=torch.randint(2, (count * samples,), generator=stream),
            z=torch.rand(count, 2, generator=stream),
            offsets=torch.arange(count + 1) * samples,
            ids=np.arange(start, start + count),
            descriptors=("a", "b"),
            factors=("a", "b"),
            classes=np.array([0, 1]),
        )


def draw_seconds(domains: DomainSet, repeats: int) -> float:
    """Return the median time of a draw of 64 domains × 128 samples."""
    times = []
    for step in range(repeats):
        stream = torch_stream(0, "draws", step)
        index = torch.randint(len(domains), (64,), generator=stream)
        started = time.perf_counter()
        domains.draw(index, 128, stream)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def memory() -> dict[str, float]:
    """Return what the process holds, in MB: its own memory, and pages of mapped files, which the system may drop."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {"own": int(fields["RssAnon"].split()[0]) / 1024, "mapped": int(fields["RssFile"].split()[0]) / 1024}


def from_disk(path: Path, repeats: int) -> dict[str, Any]:
    """Open a stored set and draw from it."""
    before = memory()
    started = time.perf_counter()
    domains = open_domains(path)
    opened = time.perf_counter() - started
    return {"open": opened, "draw": draw_seconds(domains, repeats), "before": before, "after": memory()}


def from_memory(samples: int, repeats: int) -> float:
    """Draw from a thousand domains in memory."""
    return draw_seconds(next(pieces(1000, samples, 8)), repeats)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    """Store, open, draw, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domains", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=None, help="where the set is written; the temporary folder")
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "set"
        started = time.perf_counter()
        store_domains(pieces(arguments.domains, arguments.samples, 8), path)
        store_seconds = time.perf_counter() - started
        size = sum(file.stat().st_size for file in path.iterdir())
        disk = apart(from_disk, path, arguments.repeats)
    in_memory = apart(from_memory, arguments.samples, arguments.repeats)
    content = {
        "command": "python benchmarks/stream.py --out results/cpu/stream.json",
        "versions": {"thetafield": __version__, "torch": torch.__version__},
        "domains": arguments.domains,
        "samples": arguments.samples,
        "bytes on the disk": size,
        "store seconds": store_seconds,
        "open seconds": disk["open"],
        "memory before drawing, MB": disk["before"],
        "memory after drawing, MB": disk["after"],
        "figures": [
            {
                "name": "draws of 64 × 128 samples from the disk, against a set in memory",
                "value": 1 / disk["draw"],
                "unit": "draws/s",
                "reference": 1 / in_memory,
                "ratio": in_memory / disk["draw"],
            }
        ],
    }
    print(f"{size / 1e9:.1f} GB stored in {store_seconds:.0f} s, opened in {disk['open'] * 1e3:.0f} ms")
    print(f"{1 / disk['draw']:.0f} draws/s from the disk, {1 / in_memory:.0f} from memory")
    print(f"memory before drawing {disk['before']}, after {disk['after']} (MB)")
    if arguments.out:
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
