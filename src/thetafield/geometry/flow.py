"""Flows: a latent carried along time by de/dt = k(e)."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from thetafield.errors import OptionError, closest
from thetafield.geometry.expm import TaylorPlan, expm_action, fused, norm_bound
from thetafield.predictors.perceptron import perceptron
from thetafield.typing import Latents, Times, TransportedLatents

MOST_STEPS = 10_000


class Flow(nn.Module, ABC):
    """Carries latents to several times at once."""

    def measure(self, times: Times) -> tuple[int, ...]:
        """Return the amount of work that a training step over these times takes: none that varies, here."""
        return ()

    def adopt(self, work: tuple[int, ...]) -> None:
        """Let training steps do that amount, so that they read nothing back."""

    @abstractmethod
    def forward(self, latent: Latents, times: Times) -> TransportedLatents:
        """Return e(t) for k times after (or before) each latent, in the order they follow each other."""


class LinearFlow(Flow):
    """de/dt = K e, so that e(t) = exp(tK) e(0): no solver, one exponential action for all latents and times.

    Args:
        latent_dim: m.
        kind: "linear" for a free K, "skew" for K = B − Bᵀ (periodic drift), "low-rank" for K = U V of rank m/4.

    Example:
        >>> flow = LinearFlow(4, "skew")
        >>> e = torch.randn(2, 4)
        >>> carried = flow(e, torch.tensor([[0.0, 1.0], [0.0, 2.0]]))
        >>> torch.allclose(carried.norm(dim=-1), e.norm(dim=-1, keepdim=True).expand(2, 2), atol=1e-5)
        True
    """

    def __init__(self, latent_dim: int, kind: str = "linear") -> None:
        super().__init__()
        self.kind = kind
        rank = max(1, latent_dim // 4)
        bound = 1 / math.sqrt(latent_dim)  # as a bias-free linear layer starts
        shapes = [(latent_dim, rank), (rank, latent_dim)] if kind == "low-rank" else [(latent_dim, latent_dim)]
        self.factors = nn.ParameterList([torch.empty(shape).uniform_(-bound, bound) for shape in shapes])
        self.plan: TaylorPlan | None = None

    @property
    def generator(self) -> Tensor:
        """K, shape (m, m)."""
        if self.kind == "low-rank":
            return self.factors[0] @ self.factors[1]
        matrix = self.factors[0]
        return matrix - matrix.mT if self.kind == "skew" else matrix

    @torch.no_grad()
    def measure(self, times: Times) -> tuple[int, ...]:
        """Return steps and Taylor terms for twice the norm of now: room to grow until the next time."""
        if fused(self.generator[None]) is not None:  # the kernel measures for itself
            return ()
        bound = float(norm_bound(self.generator[None], times.reshape(1, -1)))
        plan = TaylorPlan.for_norm(max(2 * bound, 1.0), times.dtype)
        return plan.num_steps, plan.num_terms

    def adopt(self, work: tuple[int, ...]) -> None:
        """Take these steps and terms in training."""
        self.plan = TaylorPlan(*work) if work else None

    def forward(self, latent: Latents, times: Times) -> TransportedLatents:
        """Return exp(t_k K) e; every latent and time is one column under the one matrix."""
        columns = latent[:, None].expand(-1, times.shape[1], -1).flatten(0, 1).mT
        plan = self.plan if self.training else None
        carried = expm_action(self.generator[None], columns[None], times.reshape(1, -1), plan)
        return carried[0].mT.unflatten(0, times.shape)


class NeuralFlow(Flow):
    """de/dt = k(e) with k a perceptron of one hidden layer, by Runge-Kutta of fourth order with a fixed step.

    Every interval between two times takes as many steps as it needs, and every latent goes through its own steps one
    after the other, so that all move together, none depends on another, and only one that has arrived waits.

    Args:
        latent_dim: m.
        hidden: Width of the hidden layer.
        step: Longest step.
    """

    def __init__(self, latent_dim: int, hidden: int, step: float = 0.2) -> None:
        super().__init__()
        self.net = perceptron([latent_dim, hidden, latent_dim])
        self.step = step
        self.num_steps: int | None = None

    def measure(self, times: Times) -> tuple[int, ...]:
        """Return how many steps the longest way through these times needs."""
        return (int(self._counts(_gaps(times)).sum(1).max()),)

    def adopt(self, work: tuple[int, ...]) -> None:
        """Loop as often in training."""
        (self.num_steps,) = work

    def _counts(self, gaps: Tensor) -> Tensor:
        """Return the number of steps of each interval."""
        return (gaps.abs() / self.step - 1e-6).ceil().clamp(min=0)

    def forward(self, latent: Latents, times: Times) -> TransportedLatents:
        """Return the solution at each time; the loop runs over time only."""
        if not times.numel():
            return latent.new_zeros(*times.shape, latent.shape[1])
        gaps = _gaps(times)
        counts = self._counts(gaps)
        arrived = counts.cumsum(1)[..., None]  # steps that lie behind each time
        longest = self.num_steps if self.training and self.num_steps else int(arrived[:, -1].max())
        if longest > MOST_STEPS:  # hours of work for an answer that nobody should believe
            return latent.new_full((*times.shape, latent.shape[1]), math.nan)
        # The interval in which each latent takes each of its steps; behind the last one the steps are of no length.
        numbers = torch.arange(longest, device=times.device, dtype=times.dtype).repeat(len(times), 1)
        interval = torch.searchsorted(arrived[..., 0], numbers, right=True)
        sizes = nn.functional.pad(gaps / counts.clamp(min=1), (0, 1)).gather(1, interval)
        value, carried = latent, latent[:, None].expand(-1, times.shape[1], -1)
        for number in range(longest):
            value = self._advance(value, sizes[:, number, None])
            carried = torch.where(arrived == number + 1, value[:, None], carried)
        return carried

    def _advance(self, value: Tensor, step: Tensor) -> Tensor:
        first = self.net(value)
        second = self.net(value + step / 2 * first)
        third = self.net(value + step / 2 * second)
        fourth = self.net(value + step * third)
        return value + step / 6 * (first + 2 * second + 2 * third + fourth)


def _gaps(times: Tensor) -> Tensor:
    """Return the time from each entry to the next, the first one from zero."""
    return torch.diff(times, dim=1, prepend=torch.zeros_like(times[:, :1]))


def make_flow(dynamics: str, latent_dim: int, hidden: int) -> Flow:
    """Return the flow called "linear", "skew", "low-rank" or "neural"."""
    if dynamics == "neural":
        return NeuralFlow(latent_dim, hidden)
    if dynamics not in ("linear", "skew", "low-rank"):
        raise OptionError(f"There are no dynamics {dynamics!r}; {closest(dynamics, ['linear', 'skew', 'low-rank'])}")
    return LinearFlow(latent_dim, dynamics)
