"""ReLU of 2 × 2 maxima in one kernel against torch's own, values and gradients."""

import json

import pytest
import torch

from interpreted import interpreted, needs_triton

SHAPES = {"even": (3, 8, 6, 4), "odd": (2, 16, 7, 5), "many": (5, 32, 14, 14)}


def measure():
    """Return the largest difference of values and of gradients, shape by shape."""
    from thetafield.predictors.pool_kernel import pooled

    apart = {}
    for name, shape in SHAPES.items():
        images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        pull = torch.randn(*shape[:2], shape[2] // 2, shape[3] // 2)
        ours, theirs = images.clone().requires_grad_(), images.clone().requires_grad_()
        got, expected = pooled(ours), torch.relu(torch.nn.functional.max_pool2d(theirs, 2))
        got.backward(pull)
        expected.backward(pull)
        apart[name] = [float((got - expected).detach().abs().max()), float((ours.grad - theirs.grad).abs().max())]
    images = torch.randn(3, 2, 4, 6, 6, generator=torch.Generator().manual_seed(1))
    for name, where in {"stacked": 0, "stacked elsewhere": 2}.items():
        ours, theirs = images.clone().requires_grad_(), images.clone().requires_grad_()
        got = torch.func.vmap(pooled, in_dims=where)(ours)
        expected = torch.stack([torch.relu(torch.nn.functional.max_pool2d(part, 2)) for part in theirs.unbind(where)])
        pull = torch.randn(expected.shape)
        got.backward(pull)
        expected.backward(pull)
        apart[name] = [float((got - expected).detach().abs().max()), float((ours.grad - theirs.grad).abs().max())]
    broken = torch.full((1, 16, 2, 2), float("nan"))
    apart["nan"] = bool(pooled(broken).isnan().all())
    return apart


@pytest.fixture(scope="module")
def apart():
    return interpreted(__file__)


@needs_triton
@pytest.mark.parametrize("shape", [*SHAPES, "stacked", "stacked elsewhere"])
def test_kernel_equals_maxima_and_relu(shape, apart):
    assert apart[shape] == [0, 0]


@needs_triton
def test_what_is_no_number_stays_visible(apart):
    assert apart["nan"]


if __name__ == "__main__":
    print(json.dumps(measure()))
