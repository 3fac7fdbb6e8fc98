"""Plain references that the tests of losses share: one domain, one head, textbook formulae."""

import torch
from torch.func import functional_call


def head(method, theta, x):
    """Run one domain through the head, one θ."""
    predictor = method.problem.predictor
    return functional_call(predictor.template, predictor.spec.views(theta), (x,))


def body(method, theta, x):
    """The features before the last layer."""
    weights = method.problem.predictor.spec.views(theta)
    h = torch.relu(x @ weights["0.weight"].T + weights["0.bias"])
    return torch.relu(h @ weights["2.weight"].T + weights["2.bias"])


def sample_loss(method, outputs, y):
    if method.problem.loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(outputs, y)
    return (outputs - y).square().mean()


def assert_same(terms, reference, parameters):
    """Values and gradients agree to 1e-9."""
    assert set(terms) == set(reference)
    for name, value in terms.items():
        torch.testing.assert_close(value, reference[name], rtol=1e-9, atol=1e-12)
        fast = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        slow = torch.autograd.grad(reference[name], parameters, retain_graph=True, allow_unused=True)
        for parameter, a, b in zip(parameters, fast, slow, strict=True):
            zero = torch.zeros_like(parameter)
            torch.testing.assert_close(zero if a is None else a, zero if b is None else b, rtol=1e-9, atol=1e-12)
