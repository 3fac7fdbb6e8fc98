"""exp(tA)·v by action against one dense exponential for every pair."""

from collections.abc import Iterator

import torch
from torch import Tensor

from thetafield.geometry.expm import TaylorPlan, expm_action, norm_bound
from thetafield.geometry.transport import ROOM
from thetafield.speed.findings import Figure, Finding
from thetafield.speed.timing import Bench, Work
from thetafield.streams import torch_stream

SOURCES, LATENT, COLUMNS, NORM = 64, 32, 6, 4.0


def dense_action(generators: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
    """Form one exponential per pair, as the method is usually written."""
    matrices = torch.linalg.matrix_exp(scale[:, :, None, None] * generators[:, None])
    return torch.einsum("bkij,bjk->bik", matrices, vectors)


def draw(norm: float, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Return random generators of a 2-norm, columns and scalars in [−1, 1]."""
    stream = torch_stream(0, "speed", "exponential")
    generators = torch.randn(SOURCES, LATENT, LATENT, dtype=torch.float64, generator=stream)
    generators *= norm / torch.linalg.matrix_norm(generators, 2)[:, None, None]
    vectors = torch.randn(SOURCES, LATENT, COLUMNS, dtype=torch.float64, generator=stream)
    scale = 2 * torch.rand(SOURCES, COLUMNS, dtype=torch.float64, generator=stream) - 1
    return generators.to(dtype), vectors.to(dtype), scale.to(dtype)


def exponential(bench: Bench) -> Iterator[Finding]:
    """Time the action, forward and backward, as training calls it."""
    generators, vectors, scale = leaves = [value.to(bench.device).requires_grad_() for value in draw(NORM)]
    bound = ROOM * float(norm_bound(generators.detach(), scale.detach()))
    plan = TaylorPlan.for_norm(bound, torch.float32)

    def action() -> None:
        torch.autograd.grad(expm_action(generators, vectors, scale, plan).square().sum(), leaves)

    def dense() -> None:
        torch.autograd.grad(dense_action(generators, vectors, scale).square().sum(), leaves)

    seconds = bench.time({"action": Work(action), "dense": Work(dense)})
    yield Figure(
        f"exp(tA)·v, forward and backward, {SOURCES} × {COLUMNS} pairs, m = {LATENT}",
        seconds["action"],
        "s",
        seconds["dense"],
        "a dense exponential for every pair",
    )
