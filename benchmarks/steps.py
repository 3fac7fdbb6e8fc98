"""One training step of the comparison methods on 2-Moons against the same step with a Python loop over the domains.

Run: .venv/bin/python benchmarks/steps.py --out results/cpu/steps.json
A step is loss, backward and Adam; the batches are drawn beforehand for both. The loops are in the manner of DomainBed:
an ordinary network, a list of one mini-batch per domain, a forward pass for each. Before anything is timed, both must
give the same losses and gradients in double precision. Both are timed in turn in one process.
"""

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import torch
from torch import Tensor, nn

from thetafield import __version__
from thetafield.data import DescriptorScaler
from thetafield.data.domains import DomainBatch
from thetafield.datasets import DATASETS
from thetafield.files import write_json
from thetafield.memory import keep_freed_memory
from thetafield.methods.base import METHODS, Problem
from thetafield.methods.pooled import PooledMethod
from thetafield.predictors import PREDICTORS
from thetafield.streams import seeded

cross_entropy = nn.functional.cross_entropy
Minibatches = list[tuple[Tensor, Tensor]]


class Loop:
    """ERM, domain by domain; the other methods replace the loss.

    Args:
        method: The library's method, whose options and start are taken.
    """

    def __init__(self, method: PooledMethod) -> None:
        self.method = method
        self.network = nn.Sequential(nn.Linear(2, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 2))
        self.network.to(method.learned.theta.dtype)
        self.network.load_state_dict(method.predictor.spec.views(method.learned.theta.detach()))
        # The same Adam as the library's: only the loop is compared.
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=method.lr, weight_decay=method.weight_decay, fused=True
        )

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Return the mean risk."""
        return sum(cross_entropy(self.network(x), y) for x, y in minibatches) / len(minibatches)

    def backward(self, minibatches: Minibatches) -> float:
        """Set the gradients and return the loss."""
        loss = self.loss(minibatches)
        self.optimiser.zero_grad()
        loss.backward()
        return loss.item()

    def step(self, minibatches: Minibatches) -> None:
        """Train on one batch."""
        self.backward(minibatches)
        self.optimiser.step()


class LoopIRM(Loop):
    """A dummy scale and a double backward for each domain."""

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Return the mean risk and the weighted penalty."""
        risk = penalty = 0.0
        for x, y in minibatches:
            logits = self.network(x)
            risk = risk + cross_entropy(logits, y)
            scale = torch.ones((), dtype=x.dtype, requires_grad=True)
            even = cross_entropy(logits[::2] * scale, y[::2])
            odd = cross_entropy(logits[1::2] * scale, y[1::2])
            (even_slope,) = torch.autograd.grad(even, scale, create_graph=True)
            (odd_slope,) = torch.autograd.grad(odd, scale, create_graph=True)
            penalty = penalty + even_slope * odd_slope
        return (risk + self.method.weight * penalty) / len(minibatches)


class LoopVREx(Loop):
    """The variance of a list of risks."""

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Return the mean risk and the weighted variance."""
        risks = torch.stack([cross_entropy(self.network(x), y) for x, y in minibatches])
        return risks.mean() + self.method.weight * ((risks - risks.mean()) ** 2).mean()


class LoopGroupDRO(Loop):
    """One weight after the other."""

    def __init__(self, method: PooledMethod) -> None:
        super().__init__(method)
        self.weights = method.group_weights.clone()

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Update the weights and return the weighted risk."""
        risks = []
        for number, (x, y) in enumerate(minibatches):
            risk = cross_entropy(self.network(x), y)
            self.weights[number] *= (self.method.eta * risk.detach()).exp()
            risks.append(risk)
        self.weights /= self.weights.sum()
        return torch.dot(torch.stack(risks), self.weights)


class LoopMixup(Loop):
    """One pair after the other around the ring."""

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Draw the ring and the shares, and return the mean risk of the pairs."""
        count = len(minibatches)
        ring = torch.randperm(count).tolist()
        concentration = torch.full((count,), self.method.alpha, dtype=minibatches[0][0].dtype)
        shares = torch.distributions.Beta(concentration, concentration).sample().tolist()
        loss = 0.0
        for i, j, share in zip(ring, ring[1:] + ring[:1], shares, strict=True):
            (x_i, y_i), (x_j, y_j) = minibatches[i], minibatches[j]
            logits = self.network(share * x_i + (1 - share) * x_j)
            loss = loss + share * cross_entropy(logits, y_i) + (1 - share) * cross_entropy(logits, y_j)
        return loss / count


class LoopMLDG(Loop):
    """A copy of the network and a fresh Adam for every pair."""

    def backward(self, minibatches: Minibatches) -> float:
        """Accumulate the gradients of all pairs and return the sum of both risks."""
        method, count = self.method, len(minibatches)
        parameters = list(self.network.parameters())
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        order = torch.randperm(count).tolist()
        loss = 0.0
        for i, j in zip(order[: -method.meta_test], cycle(order[-method.meta_test :]), strict=False):
            (x_i, y_i), (x_j, y_j) = minibatches[i], minibatches[j]
            inner = copy.deepcopy(self.network)
            optimiser = torch.optim.Adam(inner.parameters(), lr=method.lr, weight_decay=method.weight_decay)
            optimiser.zero_grad()
            risk = cross_entropy(inner(x_i), y_i)
            risk.backward()
            optimiser.step()
            meta = cross_entropy(inner(x_j), y_j)
            outer = torch.autograd.grad(meta, list(inner.parameters()))
            for parameter, stepped, gradient in zip(parameters, inner.parameters(), outer, strict=True):
                parameter.grad += (stepped.grad + method.beta * gradient) / count
            loss += (risk.item() + method.beta * meta.item()) / count
        return loss


LOOPS = {
    "erm": Loop,
    "irm": LoopIRM,
    "vrex": LoopVREx,
    "groupdro": LoopGroupDRO,
    "mixup": LoopMixup,
    "mldg": LoopMLDG,
}


def build(name: str, options: dict[str, int]) -> PooledMethod:
    """Return a method on the 50 training domains with the 2-50-50-2 head."""
    data = DATASETS["two-moons"](0)
    scaler = DescriptorScaler.fit(data.train.z, data.train.descriptors)
    domains = replace(data.train, z=scaler(data.train.z))
    with seeded(0, "start"):
        predictor = PREDICTORS[data.predictor]((2,), 2, **data.predictor_options)
        return METHODS[name](Problem(domains, predictor, "cross_entropy", 0), **options)


def as_list(batch: DomainBatch) -> Minibatches:
    """Return a batch as one mini-batch per domain."""
    return [(x.clone(), y.clone()) for x, y in zip(batch.x, batch.y, strict=True)]


def check(name: str, options: dict[str, int]) -> None:
    """Raise where the loop differs from the library in a loss or a gradient of the first two batches."""
    method = build(name, options).double()
    phase, loop = method.phases()[-1], LOOPS[name](method)
    for number, batch in enumerate(islice(phase.batches(0), 2)):
        weight = torch.full_like(batch.weight, 1 / batch.weight.shape[1], dtype=torch.float64)
        batch = DomainBatch(batch.x.double(), batch.y, weight, batch.index)
        with seeded(number, "noise"):
            loss = sum(phase.players[0].loss(batch).values())
        (gradient,) = torch.autograd.grad(loss, method.learned.theta)
        with seeded(number, "noise"):
            expected = loop.backward(as_list(batch))
        slopes = {key: parameter.grad for key, parameter in loop.network.named_parameters()}
        torch.testing.assert_close(loss.item(), expected, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(gradient, method.predictor.spec.flatten(slopes), rtol=1e-9, atol=1e-12)


def library_step(method: PooledMethod) -> Callable[[DomainBatch], None]:
    """Return the library's step as `fit` takes it."""
    (player,) = method.phases()[-1].players
    optimiser = torch.optim.Adam(player.parameters, lr=player.lr, weight_decay=player.weight_decay, fused=True)

    def step(batch: DomainBatch) -> None:
        values = torch.stack(list(player.loss(batch).values()))
        optimiser.zero_grad(set_to_none=True)
        values.sum().backward(inputs=player.parameters)
        optimiser.step()

    return step


def seconds(steps: list[Callable[[], None]]) -> float:
    """Return the median time of a step."""
    times = []
    for step in steps:
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def measure(name: str, options: dict[str, int], repeats: int) -> dict[str, list[float]]:
    """Time both versions in turn and return the median step of each turn."""
    method = build(name, options)
    loop, step = LOOPS[name](method), library_step(method)
    batches = list(islice(method.phases()[-1].batches(0), 25))
    # Several fast steps for a slow one, so that both are measured over comparable spans.
    fast = [partial(step, batch) for batch in batches]
    slow = [partial(loop.step, as_list(batch)) for batch in batches[:3]]
    turns = [(seconds(fast), seconds(slow)) for _ in range(repeats + 1)][1:]  # the first warms up
    return {"vectorised": [turn[0] for turn in turns], "loop": [turn[1] for turn in turns]}


def main() -> None:
    """Check, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--samples", type=int, default=None, help="samples of a domain, the methods' own by default")
    parser.add_argument("--methods", default=",".join(LOOPS))
    arguments = parser.parse_args()
    keep_freed_memory()
    options = {} if arguments.samples is None else {"samples": arguments.samples}
    times, figures = {}, []
    print(f"{'':10}{'loop, ms':>10}{'vectorised':>12}{'ratio':>8}")
    for name in arguments.methods.split(","):
        check(name, options)
        times[name] = measure(name, options, arguments.repeats)
        vectorised, loop = (statistics.median(values) for values in times[name].values())
        print(f"{name:10}{1e3 * loop:10.2f}{1e3 * vectorised:12.3f}{loop / vectorised:8.1f}", flush=True)
        figures.append(
            {
                "name": f"{name}, one 2-Moons step on the CPU",
                "value": vectorised,
                "unit": "s",
                "reference": loop,
                "ratio": loop / vectorised,
            }
        )
    content = {
        "command": "python benchmarks/steps.py --out results/cpu/steps.json",
        "threads": torch.get_num_threads(),
        "versions": {"thetafield": __version__, "torch": torch.__version__},
        "seconds": times,
        "figures": figures,
    }
    if arguments.out:
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
