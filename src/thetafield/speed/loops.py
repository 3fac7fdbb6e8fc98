"""The comparison methods as they are usually written: a Python loop over the domains, in the manner of DomainBed.

An ordinary network, a list of one mini-batch per domain, a forward pass for each. They give the same losses and
gradients as the library's methods, which the tests check; only the loop is compared.
"""

import copy
from itertools import cycle
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from thetafield.data.domains import DomainBatch
from thetafield.methods.groupdro import GroupDRO
from thetafield.methods.irm import IRM
from thetafield.methods.mixup import Mixup
from thetafield.methods.mldg import MLDG
from thetafield.methods.phase import Step
from thetafield.methods.pooled import PooledMethod
from thetafield.methods.vrex import VREx

cross_entropy = nn.functional.cross_entropy
Minibatches = list[tuple[Tensor, Tensor]]
M = TypeVar("M", bound=PooledMethod)


def as_list(batch: DomainBatch) -> Minibatches:
    """Return a batch as one mini-batch per domain."""
    return list(zip(batch.x.unbind(), batch.y.unbind(), strict=True))


class Loop(Generic[M]):
    """ERM, domain by domain; the other methods replace the loss.

    Args:
        method: The library's method, whose options, draws and start are taken.
    """

    def __init__(self, method: M) -> None:
        self.method, self.phase, self.number = method, method.phases()[-1], 0
        theta = method.learned.theta.detach()
        self.network = method.predictor.head_module(theta)
        # The same Adam as the library's.
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=method.lr, weight_decay=method.weight_decay, fused=True
        )

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Return the mean risk."""
        return torch.stack([cross_entropy(self.network(x), y) for x, y in minibatches]).mean()

    def backward(self, minibatches: Minibatches) -> float:
        """Set the gradients and return the loss."""
        loss = self.loss(minibatches)
        self.optimiser.zero_grad()
        loss.backward()
        return loss.item()

    def run(self) -> None:
        """Draw a batch as the library draws it, and take one step."""
        self.phase.reseed(self.number)
        batch = self.phase.draw(Step(self.number, torch.zeros(1, dtype=torch.long)))
        self.backward(as_list(batch))
        self.optimiser.step()
        self.number += 1


class LoopIRM(Loop[IRM]):
    """A dummy scale and a double backward for each domain."""

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Return the mean risk and the weighted penalty."""
        terms = []
        for x, y in minibatches:
            logits = self.network(x)
            scale = x.new_ones(()).requires_grad_()
            even = cross_entropy(logits[::2] * scale, y[::2])
            odd = cross_entropy(logits[1::2] * scale, y[1::2])
            (even_slope,) = torch.autograd.grad(even, scale, create_graph=True)
            (odd_slope,) = torch.autograd.grad(odd, scale, create_graph=True)
            terms.append(cross_entropy(logits, y) + self.method.weight * even_slope * odd_slope)
        return torch.stack(terms).mean()


class LoopVREx(Loop[VREx]):
    """The variance of a list of risks."""

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Return the mean risk and the weighted variance."""
        risks = torch.stack([cross_entropy(self.network(x), y) for x, y in minibatches])
        return risks.mean() + self.method.weight * ((risks - risks.mean()) ** 2).mean()


class LoopGroupDRO(Loop[GroupDRO]):
    """One weight after the other."""

    def __init__(self, method: GroupDRO) -> None:
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


class LoopMixup(Loop[Mixup]):
    """One pair after the other around the ring."""

    def loss(self, minibatches: Minibatches) -> Tensor:
        """Draw the ring and the shares, and return the mean risk of the pairs."""
        count, first = len(minibatches), minibatches[0][0]
        ring = torch.rand(count, device=first.device).argsort().tolist()
        concentration = first.new_full((count,), self.method.alpha)
        shares = torch.distributions.Beta(concentration, concentration).sample().tolist()
        risks = []
        for i, j, share in zip(ring, ring[1:] + ring[:1], shares, strict=True):
            (x_i, y_i), (x_j, y_j) = minibatches[i], minibatches[j]
            logits = self.network(share * x_i + (1 - share) * x_j)
            risks.append(share * cross_entropy(logits, y_i) + (1 - share) * cross_entropy(logits, y_j))
        return torch.stack(risks).mean()


class LoopMLDG(Loop[MLDG]):
    """A copy of the network and a fresh Adam for every pair."""

    def backward(self, minibatches: Minibatches) -> float:
        """Accumulate the gradients of all pairs and return the sum of both risks."""
        method, count = self.method, len(minibatches)
        parameters = list(self.network.parameters())
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        order = torch.rand(count, device=minibatches[0][0].device).argsort().tolist()
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
                assert parameter.grad is not None and stepped.grad is not None
                parameter.grad += (stepped.grad + method.beta * gradient) / count
            loss += (risk.item() + method.beta * meta.item()) / count
        return loss


LOOPS: dict[str, type[Loop]] = {
    "erm": Loop,
    "irm": LoopIRM,
    "vrex": LoopVREx,
    "groupdro": LoopGroupDRO,
    "mixup": LoopMixup,
    "mldg": LoopMLDG,
}
