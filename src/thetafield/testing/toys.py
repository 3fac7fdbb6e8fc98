"""Toy problems, and methods with small settings for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from thetafield.data.domains import DomainSet
from thetafield.methods.base import METHODS, Learner, Loss, Method, Problem
from thetafield.options import schema
from thetafield.predictors.base import PREDICTORS
from thetafield.streams import seeded

# Small settings by option name: a suite that runs on every method cannot know each one's options.
SMALL: dict[str, Any] = {
    "steps": 30,
    "tune_steps": 10,
    "base_steps": 10,
    "epochs": 6,
    "samples": 4,
    "block": 6,
    "neighbours": 2,
    "latent_dim": 4,
    "widths": (12, 8),
    "hidden": 8,
    "width": 8,
    "anneal_steps": 10,
    "segment": 3,
    "batch": 4,
    "rounds": 20,
}


def toy_problem(
    *,
    regression: bool = False,
    num_domains: int = 6,
    sizes: tuple[int, ...] = (5, 9, 7, 6, 8, 5),
    seed: int = 0,
    order: list[int] | None = None,
    ordered: bool = False,
) -> Problem:
    """Return a ragged problem in double precision whose best head turns with the descriptor.

    There are two descriptors, or one, `time`, where the problem is `ordered`; the domains do not come in its order.
    """
    stream = np.random.default_rng(seed)
    z = stream.uniform(size=(num_domains, 2))[:, : 1 if ordered else 2]
    counts = np.resize(sizes, num_domains)
    codes = np.repeat(np.arange(num_domains), counts)
    x = stream.normal(size=(len(codes), 3))
    angle = 2 * z[codes, 0]
    signal = x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle)
    y = np.stack([signal, -signal], 1) if regression else (signal > 0).astype(int)
    domains = DomainSet.from_arrays(
        x,
        y,
        domain=codes,
        z=z,
        classification=not regression,
        dtype=torch.float64,
        descriptors=("time",) if ordered else ("place", "time"),
    )
    if order is not None:
        domains = domains.select(order)
    with seeded(seed, "start"):
        predictor = PREDICTORS["mlp"]((3,), 2, hidden=(6, 5)).double()
    return Problem(domains, predictor, "squared_error" if regression else "cross_entropy", seed)


def own_problem(name: str, loss: Loss = "cross_entropy", **given: Any) -> Problem:
    """Return the problem of a method, as it needs it."""
    return toy_problem(regression=loss != "cross_entropy", ordered=METHODS[name].needs.ordered, **given)


def make_method(name: str, problem: Problem, **changed: Any) -> Method:
    """Build a method with small settings, in the problem's precision."""
    with seeded(problem.seed, "start"):
        method = make_learner(name, problem, **changed)
    assert isinstance(method, Method)
    return method.double()


def make_learner(name: str, problem: Problem, **changed: Any) -> Learner:
    """Build a method, with or without θ, with small settings."""
    return METHODS[name](problem, **(_small(name) | changed))


def make_method_of_images(name: str) -> Method:
    """Build a method with small settings for images of random pixels, with a backbone of convolutions."""
    plain = own_problem(name).domains
    images = torch.randint(256, (plain.x.shape[0], 3, 8, 8), generator=torch.Generator().manual_seed(0))
    domains = replace(plain, x=images.to(torch.uint8), z=plain.z.float())
    with seeded(0, "start"):
        predictor = PREDICTORS["convnet"]((3, 8, 8), 2, hidden=(4,))
        method = make_learner(name, Problem(domains, predictor, "cross_entropy", 0))
    assert isinstance(method, Method)
    return method


def _small(name: str) -> dict[str, Any]:
    chosen = {}
    for key, (_, default) in schema(METHODS[name]).items():
        if key in SMALL:
            chosen[key] = (
                (SMALL[key],) if isinstance(default, tuple) and not isinstance(SMALL[key], tuple) else SMALL[key]
            )
    return chosen
