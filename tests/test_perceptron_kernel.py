"""Risks and gradients of many perceptrons in one kernel against the eager heads in double precision."""

import json

import pytest
import torch
from torch import nn

from interpreted import interpreted, needs_triton, relative_error
from thetafield.data.domains import DomainBatch
from thetafield.methods.base import Problem
from thetafield.predictors.base import Predictor
from thetafield.predictors.lift import lifted
from thetafield.predictors.perceptron import perceptron
from thetafield.testing.toys import toy_problem

WHERE = [2, 0, 2, 3, 0]  # several heads on one domain, and a domain without a head
CASES = {
    f"{'-'.join(map(str, widths))} {loss} {samples}": (widths, loss, samples)
    for widths, loss, samples in [
        ((2, 50, 50, 2), "cross_entropy", 150),
        ((2, 50, 50, 2), "cross_entropy", 7),
        ((3, 6, 5, 2), "cross_entropy", 64),
        ((3, 6, 5, 2), "absolute_error", 40),
        ((3, 6, 5, 2), "squared_error", 40),
        ((17, 64, 1), "absolute_error", 150),
        ((17, 64, 1), "squared_error", 40),
        ((64, 64, 64, 64), "cross_entropy", 20),
        ((5, 4), "cross_entropy", 40),
        ((5, 2), "squared_error", 40),
    ]
}


def a_problem(widths, loss):
    torch.manual_seed(0)
    return Problem(toy_problem().domains, Predictor(perceptron(widths)), loss, 0)


def a_batch(problem, widths, samples):
    """Four domains in double precision, whose last samples are padding in all but one of them."""
    generator = torch.Generator().manual_seed(samples)
    x = torch.randn(4, samples, widths[0], generator=generator)
    if problem.loss == "cross_entropy":
        y = torch.randint(widths[-1], (4, samples), generator=generator)
    else:
        y = torch.randn(4, samples, widths[-1], generator=generator).double()
    sizes = torch.tensor([samples, samples // 2, samples - 3, 1])[:, None]
    weight = (torch.arange(samples) < sizes).double() / sizes
    return DomainBatch(x.double(), y, weight, torch.arange(4))


def thetas(problem):
    spread = torch.randn(len(WHERE), problem.predictor.dim, generator=torch.Generator().manual_seed(1))
    return problem.predictor.start + 0.3 * spread


def measure():
    """Return the relative errors of values and gradients, case by case: what the interpreter is run for."""
    from thetafield.predictors.perceptron_kernel import risks

    errors, where = {}, torch.tensor(WHERE)
    pull = torch.linspace(-2, 1, len(WHERE), dtype=torch.float64)  # another incoming gradient for each head
    for name, (widths, loss, samples) in CASES.items():
        problem = a_problem(widths, loss)
        batch = a_batch(problem, widths, samples)
        y = batch.y if loss == "cross_entropy" else batch.y.float()
        given = (batch.x.float(), y, batch.weight.float(), where, widths, loss)
        theta = thetas(problem).requires_grad_()
        wide = thetas(problem).double().requires_grad_()
        got, expected = risks(theta, *given), problem.head_risks(wide, batch.x, batch, where)
        got.backward(pull.float())
        expected.backward(pull)
        with torch.no_grad():
            alone = risks(theta, *given)
        errors[name] = {
            "values": relative_error(got.detach(), expected.detach()),
            "gradients": max(relative_error(a, b) for a, b in zip(theta.grad, wide.grad, strict=True)),
            "without gradient": relative_error(alone, expected.detach()),
        }
        if widths == (3, 6, 5, 2):
            # What is not a number must not become zero on its way through the activations, and stays with its head.
            broken = thetas(problem)
            broken[1, 0] = torch.nan
            lost = risks(broken, *given).isnan().tolist()
    return {"errors": errors, "lost": lost}


@pytest.fixture(scope="module")
def measured():
    return interpreted(__file__)


@needs_triton
@pytest.mark.parametrize("case", CASES)
def test_kernel_equals_the_eager_heads(case, measured):
    assert max(measured["errors"][case].values()) <= 1e-5, measured["errors"][case]


@needs_triton
def test_one_broken_head_leaves_the_others_alone(measured):
    assert measured["lost"] == [False, True, False, False, False]


@needs_triton
def test_which_heads_are_served():
    from thetafield.predictors.perceptron_kernel import serves

    plain = Predictor(perceptron([2, 50, 50, 2]))
    assert plain.widths == (2, 50, 50, 2)
    assert Predictor(nn.Linear(3, 2)).widths == (3, 2)
    shared = nn.Linear(4, 4)
    for head in (
        perceptron([2, 5, 2], nn.Tanh),
        nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 2)),
        nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2), nn.ReLU()),
        nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 2)),
        nn.Sequential(nn.Linear(2, 5, bias=False), nn.ReLU(), nn.Linear(5, 2)),
        nn.Sequential(shared, nn.ReLU(), shared),
        nn.Sequential(nn.Flatten(-2), nn.Linear(4, 2)),
    ):
        assert Predictor(head).widths is None
    assert lifted(plain, "measurement").widths is None
    assert not serves(plain, torch.zeros(5, plain.dim), torch.zeros(4, 7, 2))  # not on a GPU


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error"])
def test_heads_on_picked_domains_equal_heads_on_copies(loss):
    problem = a_problem((3, 6, 5, 2), loss)
    batch, theta = a_batch(problem, (3, 6, 5, 2), 9), thetas(problem).double().requires_grad_()
    features = batch.x.clone().requires_grad_()
    got = problem.head_risks(theta, features, batch, torch.tensor(WHERE))
    one_by_one = [
        problem.risks(
            problem.predictor.head(theta[h, None], features[w, None]),
            DomainBatch(batch.x[w, None], batch.y[w, None], batch.weight[w, None], batch.index[w, None]),
        )
        for h, w in enumerate(WHERE)
    ]
    expected = torch.cat(one_by_one)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)
    pull = torch.linspace(-2, 1, len(WHERE), dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(got, (theta, features), pull),
        torch.autograd.grad(expected, (theta, features), pull),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


if __name__ == "__main__":
    print(json.dumps(measure()))
