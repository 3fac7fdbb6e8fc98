"""Steps of the comparison methods against Python loops over the domains."""

from collections.abc import Iterator

from thetafield.methods.pooled import PooledMethod
from thetafield.speed.findings import Figure, Finding
from thetafield.speed.loops import LOOPS
from thetafield.speed.problems import learner, two_moons
from thetafield.speed.stepping import Stepping
from thetafield.speed.timing import Bench, Work


def methods(bench: Bench) -> Iterator[Finding]:
    """Time a step, drawing and Adam included on both sides."""
    domains = two_moons()
    for name, loop_of in LOOPS.items():
        start = learner(name, domains, bench.device)
        assert isinstance(start, PooledMethod)
        loop = loop_of(start)
        stepping = Stepping(learner(name, domains, bench.device), steps=25)
        seconds = bench.time({name: stepping.steps, f"{name} as a loop": Work(loop.run)})
        yield Figure(
            f"step of {name} on 2-Moons, {len(domains)} domains × {start.samples} samples",
            seconds[name],
            "s",
            seconds[f"{name} as a loop"],
            "a Python loop over the domains",
        )
