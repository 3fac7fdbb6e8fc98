"""How a training step of neurallio grows: with the number of domains, and with the number of head parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from thetafield.geometry.atlas import knn_charts
from thetafield.methods.base import Method
from thetafield.speed.findings import Curve, Figure, Finding, PowerLaw
from thetafield.speed.footprint import Footprint
from thetafield.speed.paper import COLD
from thetafield.speed.problems import learner, moons
from thetafield.speed.stepping import Stepping
from thetafield.speed.timing import Bench

NEIGHBOURS, BLOCK, SAMPLES = 5, 64, 64  # over growing numbers of domains
FEW_DOMAINS, FEW_NEIGHBOURS, SMALL_BLOCK = 16, 3, 4  # over growing heads
MOST_DOMAINS = {"quick": 10**4, "cpu": 10**5, "cuda": 10**6}
COMMON_SIZE = 1000  # domains against which the largest number is held
# Heads 2-h-h-2 of 2.8 thousand to 9 million parameters.
WIDTHS = (50, 100, 200, 320, 560, 1000, 1750, 3000)
LARGEST_WIDTH = {"quick": 320, "cpu": 1000, "cuda": 3000}
# Below these sizes, a step's cost is that of calling operations, not of arithmetic or memory. Three points are needed.
FIT_FROM = (10**5, 10**4)


@dataclass(frozen=True)
class Size:
    """A problem of one size, in training.

    Args:
        size: Its size.
        stepping: Its training.
        peak: Bytes at the peak of a GPU's memory, data included.
        numbers: What else is known of it.
    """

    size: int
    stepping: Stepping
    peak: int | None
    numbers: Mapping[str, Any]

    @classmethod
    def start(cls, bench: Bench, before: Footprint, size: int, method: Method, numbers: Mapping[str, Any]) -> "Size":
        """Let a method take its first steps, to see how much more memory than `before` they need."""
        stepping = Stepping(method, steps=20 if bench.on_gpu else 8)
        before.restart()
        stepping.run()
        return cls(size, stepping, before.peak, numbers)


def domains(bench: Bench) -> Iterator[Finding]:
    """Time a step over growing numbers of domains; an epoch is as many steps as it takes to visit all anchors."""
    most = MOST_DOMAINS["quick" if bench.quick else bench.device.type]
    sizes = [_many_domains(bench, 10**power) for power in range(1, len(str(most)))]
    seconds = bench.time({f"{size.size:,} domains": size.stepping.steps for size in sizes})
    points = []
    for size in sizes:
        step = seconds[f"{size.size:,} domains"]
        epoch = -(-size.size // BLOCK) * step + size.numbers["shuffle_seconds"]
        points.append(
            {"domains": size.size, "step_seconds": step, "epoch_seconds": epoch}
            | dict(size.numbers)
            | {"peak_bytes": size.peak, "optimiser_bytes": size.stepping.optimiser_bytes}
        )
    law = PowerLaw.fit([p["domains"] for p in points], [p["epoch_seconds"] for p in points], start=100)
    last = points[-1]
    common = next(point for point in points if point["domains"] == COMMON_SIZE)
    growth = last["step_seconds"] / common["step_seconds"]
    yield Curve("domains", "epoch_seconds", points, law, {"step_growth": growth})
    yield Figure(
        f"step of neurallio over {last['domains']:,} domains",
        last["step_seconds"],
        "s",
        common["step_seconds"],
        f"a step over {COMMON_SIZE:,} domains",
    )
    yield Figure(f"charts of {last['domains']:,} domains", last["charts_seconds"], "s")
    if last["peak_bytes"] is not None:
        yield Figure(f"peak memory over {last['domains']:,} domains", last["peak_bytes"], "B")


def _many_domains(bench: Bench, count: int) -> Size:
    """Start training on `count` domains of moons."""
    bench.tell(f"making {count:,} domains")
    before = Footprint(bench.device)
    data = moons(count, bench.device)
    charts = bench.once(lambda: knn_charts(data.z, NEIGHBOURS))
    options = COLD | {"epochs": 1, "block": BLOCK, "neighbours": NEIGHBOURS, "samples": SAMPLES}
    method = learner("neurallio", data, bench.device, options)
    (phase,) = method.phases()
    shuffle = bench.once(lambda: phase.begin_epoch(0))
    return Size.start(bench, before, count, method, {"charts_seconds": charts, "shuffle_seconds": shuffle})


def parameters(bench: Bench) -> Iterator[Finding]:
    """Time a step over growing heads."""
    widest = LARGEST_WIDTH["quick" if bench.quick else bench.device.type]
    sizes = [_wide_head(bench, width) for width in WIDTHS if width <= widest]
    seconds = bench.time({f"{size.size:,} parameters": size.stepping.steps for size in sizes})
    points = [
        {"parameters": size.size, "step_seconds": seconds[f"{size.size:,} parameters"]}
        | dict(size.numbers)
        | {"peak_bytes": size.peak, "optimiser_bytes": size.stepping.optimiser_bytes}
        for size in sizes
    ]
    counts, steps = [p["parameters"] for p in points], [p["step_seconds"] for p in points]
    start = next((start for start in FIT_FROM if sum(count >= start for count in counts) >= 3), 0)
    law, whole = PowerLaw.fit(counts, steps, start), PowerLaw.fit(counts, steps)
    yield Curve("parameters", "step_seconds", points, law, {"exponent_of_all": whole.exponent})
    yield Figure(f"step of neurallio, heads of {counts[-1]:,} parameters", steps[-1], "s")
    if points[-1]["peak_bytes"] is not None:
        yield Figure(f"peak memory, heads of {counts[-1]:,} parameters", points[-1]["peak_bytes"], "B")


def _wide_head(bench: Bench, width: int) -> Size:
    """Start training of heads with two hidden layers of `width`."""
    bench.tell(f"making heads of width {width:,}")
    options = COLD | {"block": SMALL_BLOCK, "neighbours": FEW_NEIGHBOURS, "samples": SAMPLES}
    before = Footprint(bench.device)
    method = learner("neurallio", moons(FEW_DOMAINS, bench.device), bench.device, options, hidden=(width, width))
    return Size.start(bench, before, method.predictor.dim, method, {"width": width})
