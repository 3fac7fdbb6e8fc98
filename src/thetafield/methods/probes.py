"""Probes: models tuned on single domains and tried on the others, which tell what transfers where."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.methods.base import Method, Problem
from thetafield.methods.phase import Phase, Player
from thetafield.streams import torch_stream

MOST = 256  # domains with a probe; of more, so many are drawn
SAMPLES, TRIED = 64, 200  # samples of a domain in a batch of the tuning, and those on which probes are tried
LR = 3e-3


class Probes(nn.Module):
    """One head for each of some domains, all tuned in one batched pass on a frozen backbone.

    Args:
        problem: The training side.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem
        count, device = len(problem.domains), problem.domains.z.device
        self.index = torch.arange(count, device=device)
        if count > MOST:
            drawn = torch.randperm(count, generator=torch_stream(problem.seed, "probes"))[:MOST]
            self.index = drawn.sort().values.to(device)
        self.theta = nn.Parameter(problem.predictor.start.repeat(len(self.index), 1))
        self.steps = 1
        self.known: Problem | None = None

    @torch.no_grad()
    def start_at(self, theta: Tensor) -> None:
        """Put all probes at one θ, on the backbone as it is now."""
        self.theta.copy_(theta.expand_as(self.theta))
        self.known = None

    @property
    def seen(self) -> Problem:
        """The problem as the probes see it, beyond the backbone where that can be."""
        if self.known is None:
            self.known = self.problem.beyond(self.steps * len(self.index) * SAMPLES)
        return self.known

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return the sum of the probes' own risks: each feels its own domain only."""
        outputs = self.seen.predictor(self.theta, batch.x)
        return {"risk": self.problem.risks(outputs, batch).sum()}

    def phase(self, method: Method, steps: int) -> Phase:
        """Return the phase of a method that tunes all probes."""
        self.steps = steps
        phase = method.sampled_phase("probes", steps, SAMPLES, (Player(self.loss, [self.theta], LR),))
        return replace(phase, draw=lambda step: self.seen.domains.draw(self.index, SAMPLES))

    @torch.no_grad()
    def risks(self) -> Tensor:
        """Return R_ij, how far domain i's probe errs on domain j: share of wrong answers, or mean absolute error."""
        domains, predictor = self.seen.domains, self.seen.predictor
        stream = torch_stream(self.problem.seed, "probes", "tried", device=self.index.device)
        batch = domains.draw(self.index, TRIED, stream)
        training = predictor.training
        features = predictor.eval().features(batch.x).flatten(0, 1)[None]
        rows = []
        for theta in self.theta:
            answers = predictor.head(theta[None], features)[0].unflatten(0, batch.weight.shape)
            if domains.classification:
                wrong = (answers.argmax(-1) != batch.y).to(self.theta.dtype)
            else:
                wrong = (answers - batch.y).abs().mean(-1)
            rows.append((wrong * batch.weight).sum(1))
        predictor.train(training)
        return torch.stack(rows)
