"""MLDG: gradients that also help on domains they were not taken from."""

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from thetafield.data.domains import DomainBatch
from thetafield.errors import OptionError
from thetafield.methods.base import METHODS, Needs, Problem
from thetafield.methods.pooled import PooledMethod
from thetafield.methods.space import LR, Choice, Range
from thetafield.options import Count, NonNegative, Positive

Parameters = dict[str, Tensor]


@METHODS.register("mldg")
class MLDG(PooledMethod):
    """First-order meta-learning over pairs: G_i + β G_j, with G_j taken after one fresh Adam step on domain i.

    A random permutation sets the last domains apart as meta-test; each other domain i is paired with one of them, j,
    in turn. A fresh Adam's first step is lr · g / (|g| + ε), so all inner steps are one formula over a stack of
    gradients, and all pairs run as one batch.

    Args:
        problem: The training side.
        steps: Number of batches.
        samples: Samples drawn from each domain for a batch.
        beta: β, the weight of the meta-test gradient.
        meta_test: Domains set apart in each batch.
        lr: Adam's step size, falling to zero by a cosine; also that of the inner step.
        weight_decay: L2 coefficient.

    Reference:
        Li et al., *Learning to Generalize: Meta-Learning for Domain Generalization*, AAAI 2018 (arXiv 1710.03463).
    """

    name = "mldg"
    title = "MLDG"
    reference = "Li et al., 2018"
    needs = Needs(min_domains=3)
    space = {"beta": Range(0.1, 10.0), "meta_test": Choice((1, 2)), "lr": LR}
    renumberable = False

    def __init__(
        self,
        problem: Problem,
        *,
        steps: Count = 2000,
        samples: Count = 64,
        beta: NonNegative = 1.0,
        meta_test: Count = 2,
        lr: Positive = 1e-3,
        weight_decay: NonNegative = 0.0,
    ) -> None:
        super().__init__(problem, steps, samples, lr, weight_decay)
        if meta_test >= len(problem.domains):
            raise OptionError(f"meta_test ({meta_test}) must be below the {len(problem.domains)} training domains.")
        self.beta, self.meta_test = beta, meta_test

    def loss(self, batch: DomainBatch) -> dict[str, Tensor]:
        """Return both risks as values whose gradient is the accumulated (G_i + β G_j) / E."""
        order = torch.rand(len(batch.x), device=batch.weight.device).argsort()
        train, test = order[: -self.meta_test], order[-self.meta_test :]
        return self.paired(batch, train, test[torch.arange(len(train), device=test.device) % len(test)])

    def paired(self, batch: DomainBatch, train: Tensor, test: Tensor) -> dict[str, Tensor]:
        """Return the terms for given pairs of positions (train[p], test[p]) in the batch."""
        parameters = self.named()
        stacked = {name: p.expand(len(train), *p.shape) for name, p in parameters.items()}
        inner, risk = self._gradients(stacked, batch, train)
        stepped = {name: stacked[name] - self.lr * self._direction(inner[name], stacked[name]) for name in stacked}
        outer, meta = self._gradients(stepped, batch, test)
        count = len(batch.x)
        return {
            "risk": _with_gradient(risk.sum() / count, inner, parameters, 1 / count),
            "meta risk": _with_gradient(self.beta * meta.sum() / count, outer, parameters, self.beta / count),
        }

    def named(self) -> Parameters:
        """Return θ₀ and the backbone's parameters by name."""
        return {"theta": self.learned.theta, **dict(self.predictor.named_parameters())}

    def _direction(self, gradient: Tensor, parameter: Tensor) -> Tensor:
        """Return the first step of a fresh Adam, divided by lr: its moments are the gradient and its square."""
        decayed = gradient + self.weight_decay * parameter
        return decayed / (decayed.abs() + 1e-8)

    def _gradients(self, stacked: Parameters, batch: DomainBatch, where: Tensor) -> tuple[Parameters, Tensor]:
        """Return gradient and risk of each stacked parameter set on the domain at its position, detached."""

        def outputs(parameters: Parameters, x: Tensor) -> Tensor:
            backbone = {name: p for name, p in parameters.items() if name != "theta"}
            if not backbone:
                return self.predictor.single(parameters["theta"], x)
            return functional_call(self.predictor, backbone, (parameters["theta"][None], x[None]))[0]

        # Each parameter set meets its own domain alone, so the gradient of the sum is the stack of all gradients.
        leaves = {name: p.detach().requires_grad_() for name, p in stacked.items()}
        part = DomainBatch(batch.x[where], batch.y[where], batch.weight[where], batch.index[where])
        risks = self.problem.risks(vmap(outputs, randomness="different")(leaves, part.x), part)
        gradients = torch.autograd.grad(risks.sum(), list(leaves.values()))
        return dict(zip(leaves, gradients, strict=True)), risks.detach()


def _with_gradient(value: Tensor, gradients: Parameters, parameters: Parameters, scale: float) -> Tensor:
    """Return `value` as a scalar whose gradient with respect to `parameters` is scale · Σ gradients."""
    parts = [(scale * gradients[name].sum(0) * p).sum() for name, p in parameters.items()]
    linear = torch.stack(parts).sum()
    return value.detach() + linear - linear.detach()
