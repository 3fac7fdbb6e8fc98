"""`expm_action` against the dense exponential: error by norm, and time forward and backward in one run.

Run: .venv/bin/python benchmarks/expm.py --out results/cpu/expm.json
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from thetafield import __version__
from thetafield.files import write_json
from thetafield.geometry.expm import TaylorPlan, expm_action

SOURCES, LATENT, COLUMNS = 64, 32, 6


def dense_action(generators: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
    """Form one exponential per pair, as the method is usually written."""
    matrices = torch.linalg.matrix_exp(scale[:, :, None, None] * generators[:, None])
    return torch.einsum("bkij,bjk->bik", matrices, vectors)


def draw(norm: float, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return random generators of a 2-norm, columns and scalars in [−1, 1]."""
    stream = torch.Generator().manual_seed(0)
    generators = torch.randn(SOURCES, LATENT, LATENT, dtype=torch.float64, generator=stream)
    generators *= norm / torch.linalg.matrix_norm(generators, 2)[:, None, None]
    vectors = torch.randn(SOURCES, LATENT, COLUMNS, dtype=torch.float64, generator=stream)
    scale = 2 * torch.rand(SOURCES, COLUMNS, dtype=torch.float64, generator=stream) - 1
    return generators.to(dtype), vectors.to(dtype), scale.to(dtype)


def error(norm: float, dtype: torch.dtype) -> float:
    """Return the largest relative error of a column against the dense float64 exponential."""
    inputs = draw(norm, dtype)
    expected = dense_action(*(value.double() for value in inputs))
    difference = (expm_action(*inputs).double() - expected).norm(dim=1) / expected.norm(dim=1)
    return float(difference.max())


def seconds(action: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> float:
    """Time forward and backward, the median of several calls."""
    leaves = [value.clone().requires_grad_() for value in inputs]
    times = []
    for _ in range(12):
        started = time.perf_counter()
        torch.autograd.grad(action(*leaves).square().sum(), leaves)
        times.append(time.perf_counter() - started)
    return statistics.median(times[2:])


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    errors = [
        {"norm": norm, "dtype": str(dtype).removeprefix("torch."), "relative_error": error(norm, dtype)}
        for dtype in (torch.float32, torch.float64)
        for norm in (0.5, 2.0, 5.0, 10.0, 20.0, 50.0)
    ]
    for row in errors:
        print(f"{row['dtype']} norm {row['norm']:>4}: relative error {row['relative_error']:.1e}")
    inputs = draw(4.0, torch.float32)
    plan = TaylorPlan.for_norm(8.0, torch.float32)
    fast = seconds(lambda *x: expm_action(*x, plan), inputs)
    slow = seconds(dense_action, inputs)
    print(f"dense {1e3 * slow:.1f} ms, action {1e3 * fast:.1f} ms: {slow / fast:.0f} times faster")
    figure = {
        "name": f"exp(tA)v forward and backward, {SOURCES} sources x {COLUMNS} targets, m = {LATENT}, CPU",
        "value": fast,
        "unit": "s",
        "reference": slow,
        "ratio": slow / fast,
    }
    if arguments.out:
        content = {
            "command": "python benchmarks/expm.py --out results/cpu/expm.json",
            "threads": torch.get_num_threads(),
            "versions": {"thetafield": __version__, "torch": torch.__version__},
            "errors": errors,
            "figures": [figure],
        }
        write_json(arguments.out, content)


if __name__ == "__main__":
    main()
