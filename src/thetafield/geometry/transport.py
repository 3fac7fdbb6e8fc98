"""Transport operators T(e, z_source, z_target): Lie, and the two ablations without its structure."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from thetafield.geometry.expm import TaylorPlan, expm_action, fused, norm_bound
from thetafield.geometry.gate import Gate
from thetafield.geometry.generators import CoefficientNet, make_generators
from thetafield.geometry.metric import Metric
from thetafield.geometry.winding import wound
from thetafield.typing import Descriptors, Latents, Targets, TransportedLatents

ROOM = 1.25  # how far norms may grow from one measurement to the next


class Transport(nn.Module, ABC):
    """Carries the latent of a source domain to the k targets of its chart, all at once.

    Args:
        descriptor_dim: d.
        latent_dim: m.
        gate: Whether a :class:`Gate` modulates the descriptors first (Eq. 7).
        projected: Whether descriptors pass through directions of a metric before anything else: coordinates that say
            nothing are left out, mixed ones take their place, or one goes round. They start as the coordinates, and
            have room for one more.
    """

    directions: Tensor
    frequencies: Tensor
    phases: Tensor

    def __init__(self, descriptor_dim: int, latent_dim: int, gate: bool, projected: bool = False) -> None:
        super().__init__()
        self.latent_dim, self.projected = latent_dim, projected
        self.seen_dim = descriptor_dim + projected
        self.gate = Gate(self.seen_dim) if gate else None
        if projected:
            self.register_buffer("directions", torch.eye(self.seen_dim, descriptor_dim))
            self.register_buffer("frequencies", torch.zeros(self.seen_dim))
            self.register_buffer("phases", torch.zeros(self.seen_dim))

    def seen(self, z: Tensor) -> Tensor:
        """Return descriptors (..., d) as the transport sees them, shape (..., seen_dim)."""
        return wound(z, self.directions, self.frequencies, self.phases) if self.projected else z

    @torch.no_grad()
    def see(self, metric: Metric | None) -> None:
        """Look along the directions of a metric from now on; None looks along the coordinates."""
        for mine in (self.directions, self.frequencies, self.phases):
            mine.zero_()
        if metric is None:
            nn.init.eye_(self.directions)
            return
        count = len(metric.weights)
        self.directions[:count] = metric.directions.to(self.directions)
        self.frequencies[:count] = metric.frequencies.to(self.frequencies)
        self.phases[:count] = metric.phases.to(self.phases)

    def gated(self, source: Descriptors, target: Targets) -> tuple[Tensor, Tensor]:
        """Return both ends as they are seen, under the gate of the source."""
        source, target = self.seen(source), self.seen(target)
        if self.gate is None:
            return source, target
        mask = self.gate(source)
        return source * mask, target * mask[:, None]

    def measure(self, source: Descriptors, target: Targets) -> tuple[int, ...]:
        """Return the amount of work that a training step over these pairs takes: none that varies, here."""
        return ()

    def adopt(self, work: tuple[int, ...]) -> None:
        """Let training steps do that amount, so that they read nothing back."""

    @abstractmethod
    def forward(self, latent: Latents, source: Descriptors, target: Targets) -> TransportedLatents:
        """Return ê(z_target) for every source and each of its targets."""


class LieTransport(Transport):
    """e(z_j) = ∏ₖ exp(cₖ(z_j − z_i) · Vᵏ(z_i)) · e(z_i), the exponential of coordinate 1 acting first (Eq. 6).

    Args:
        descriptor_dim: d.
        latent_dim: m.
        gate: Whether a gate modulates the descriptors first.
        num_generators: r; None takes one per coordinate that is seen.
        hidden: Width of the field network.
        generators: "field" (z-dependent, the paper's), "constant" or "commuting".
        projected: Whether descriptors pass through a projection first.

    Example:
        >>> transport = LieTransport(2, 4, gate=True)
        >>> latent, source = torch.randn(3, 4), torch.rand(3, 2)
        >>> bool((transport(latent, source, source[:, None]) == latent[:, None]).all())  # identity is exact
        True
    """

    def __init__(
        self,
        descriptor_dim: int,
        latent_dim: int,
        *,
        gate: bool = True,
        num_generators: int | None = None,
        hidden: int = 128,
        generators: str = "field",
        projected: bool = False,
    ) -> None:
        super().__init__(descriptor_dim, latent_dim, gate, projected)
        count = num_generators or self.seen_dim
        self.generators = make_generators(generators, self.seen_dim, latent_dim, count, hidden)
        self.coefficients = CoefficientNet(self.seen_dim, count)
        self.plan: TaylorPlan | None = None

    def algebra(self, source: Descriptors, target: Targets) -> tuple[Tensor, Tensor]:
        """Return the generators (b, r, m, m) at the gated source and the scalars (b, k, r) of each target."""
        source, target = self.gated(source, target)
        return self.generators(source), self.coefficients(target - source[:, None])

    @torch.no_grad()
    def measure(self, source: Descriptors, target: Targets) -> tuple[int, ...]:
        """Return steps and Taylor terms for the norm met on these pairs, with room to grow until the next time."""
        generators, scalars = self.algebra(source, target)
        if fused(generators) is not None:  # the kernel measures for itself
            return ()
        bound = float(norm_bound(generators, scalars.mT))
        plan = TaylorPlan.for_norm(max(ROOM * bound, 1.0), generators.dtype)
        return plan.num_steps, plan.num_terms

    def adopt(self, work: tuple[int, ...]) -> None:
        """Take these steps and terms in training."""
        self.plan = TaylorPlan(*work) if work else None

    def forward(self, latent: Latents, source: Descriptors, target: Targets) -> TransportedLatents:
        """Return ê(z_target); in training mode by the adopted plan, otherwise with the norm measured anew."""
        generators, scalars = self.algebra(source, target)
        plan = self.plan if self.training else None
        columns = latent[:, :, None].expand(-1, -1, target.shape[1])
        kernel = fused(generators)
        if kernel is not None:
            return kernel.cascade(generators, columns, scalars).mT
        for k in range(generators.shape[1]):
            columns = expm_action(generators[:, k], columns, scalars[:, :, k], plan)
        return columns.mT


class PlainTransport(Transport):
    """T-Plain: an MLP maps (z_i, z_j, e_i) to e_j, with neither geometric nor algebraic structure."""

    def __init__(
        self, descriptor_dim: int, latent_dim: int, *, gate: bool = True, hidden: int = 128, projected: bool = False
    ) -> None:
        super().__init__(descriptor_dim, latent_dim, gate, projected)
        self.net = nn.Sequential(
            nn.Linear(2 * self.seen_dim + latent_dim, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, latent_dim),
        )

    def forward(self, latent: Latents, source: Descriptors, target: Targets) -> TransportedLatents:
        """Return the MLP's answer for every source and target."""
        source, target = self.gated(source, target)
        repeated = torch.cat([source, latent], -1)[:, None].expand(-1, target.shape[1], -1)
        return self.net(torch.cat([repeated, target], -1))


class LinearTransport(Transport):
    """T-noLie: Δz feeds the field network, whose raw matrix acts on e_i without the exponential."""

    def __init__(
        self, descriptor_dim: int, latent_dim: int, *, gate: bool = True, hidden: int = 128, projected: bool = False
    ) -> None:
        super().__init__(descriptor_dim, latent_dim, gate, projected)
        self.net = nn.Sequential(nn.Linear(self.seen_dim, hidden), nn.ReLU(), nn.Linear(hidden, latent_dim**2))

    def forward(self, latent: Latents, source: Descriptors, target: Targets) -> TransportedLatents:
        """Return A(Δz)·e for every source and target."""
        source, target = self.gated(source, target)
        matrix = self.net(target - source[:, None]).unflatten(-1, (self.latent_dim, self.latent_dim))
        return torch.einsum("bkij,bj->bki", matrix, latent)
