"""The exponential's action against the dense exponential in double precision."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thetafield.errors import DivergenceError
from thetafield.geometry.expm import TaylorPlan, expm_action, norm_bound

KINDS = ["dense", "skew", "shrinking", "growing", "triangular", "diagonal", "nilpotent"]


def matrices(kind, count, size, generator):
    raw = torch.randn(count, size, size, dtype=torch.float64, generator=generator)
    made = {
        "dense": raw,
        "skew": raw - raw.mT,
        "shrinking": -raw @ raw.mT,
        "growing": raw @ raw.mT,
        "triangular": raw.triu(),
        "diagonal": raw * torch.eye(size, dtype=torch.float64),
        "nilpotent": raw.triu(1),
    }[kind]
    return made / torch.linalg.matrix_norm(made, 2)[:, None, None]


def dense(generators, vectors, scale):
    """The oracle: one double-precision exponential per column."""
    columns = [
        torch.linalg.matrix_exp(generators.double() * scale[..., k, None, None].double())
        @ vectors[..., k : k + 1].double()
        for k in range(scale.shape[-1])
    ]
    return torch.cat(columns, -1)


def relative_error(got, expected):
    return float(((got.double() - expected).norm(dim=-2) / expected.norm(dim=-2)).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("norm", "dtype", "tolerance"),
    [
        (0.1, torch.float32, 2e-6),
        (3.0, torch.float32, 2e-6),
        (10.0, torch.float32, 2e-6),
        (50.0, torch.float32, 5e-5),
        (0.1, torch.float64, 1e-12),
        (10.0, torch.float64, 1e-12),
        (50.0, torch.float64, 1e-12),
    ],
)
def test_action_is_accurate(kind, norm, dtype, tolerance, generator):
    a = (matrices(kind, 8, 32, generator) * norm).to(dtype)
    v = torch.randn(8, 32, 6, dtype=torch.float64, generator=generator).to(dtype)
    t = (2 * torch.rand(8, 6, dtype=torch.float64, generator=generator) - 1).to(dtype)
    t[:, 0] = 1
    assert relative_error(expm_action(a, v, t), dense(a, v, t)) <= tolerance
    planned = expm_action(a, v, t, TaylorPlan.for_norm(norm * math.sqrt(32), dtype))
    assert relative_error(planned, dense(a, v, t)) <= tolerance


def test_gradcheck(generator):
    a = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator).requires_grad_()
    v = torch.randn(2, 3, 2, dtype=torch.float64, generator=generator).requires_grad_()
    t = torch.randn(2, 2, dtype=torch.float64, generator=generator).requires_grad_()
    assert torch.autograd.gradcheck(expm_action, (a, v, t))
    assert torch.autograd.gradcheck(lambda *x: expm_action(*x, TaylorPlan(2, 12)), (a, v, t))


def test_gradient_equals_the_dense_one(generator):
    a = torch.randn(4, 5, 5, dtype=torch.float64, generator=generator).requires_grad_()
    v = torch.randn(4, 5, 3, dtype=torch.float64, generator=generator)
    t = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    for fast, slow in zip(
        torch.autograd.grad(expm_action(a, v, t).square().sum(), a),
        torch.autograd.grad(dense(a, v, t).square().sum(), a),
        strict=True,
    ):
        torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-9)


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 9),
    batch=st.lists(st.integers(1, 3), max_size=2),
    norm=st.floats(0, 20),
)
def test_one_parameter_group(seed, size, batch, norm):
    """exp(sA) exp(tA) v = exp((s + t)A) v, and exp(0) is the identity to the bit."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(*batch, size, size, dtype=torch.float64, generator=generator) * norm / size
    v = torch.randn(*batch, size, 2, dtype=torch.float64, generator=generator)
    s, t = torch.rand(2, *batch, 2, dtype=torch.float64, generator=generator)
    both = expm_action(a, expm_action(a, v, t), s)
    scale = torch.linalg.matrix_norm(torch.matrix_exp(a)).max() * v.norm() + v.norm()
    assert (both - expm_action(a, v, s + t)).abs().max() <= 1e-11 * scale
    assert torch.equal(expm_action(a, v, torch.zeros_like(s)), v)


@given(norm=st.floats(0, 200))
def test_plan_keeps_steps_short(norm):
    for dtype in (torch.float32, torch.float64):
        plan = TaylorPlan.for_norm(norm, dtype)
        assert norm / plan.num_steps <= 4
        remainder = (norm / plan.num_steps) ** (plan.num_terms + 1) / math.factorial(plan.num_terms + 1)
        assert remainder <= torch.finfo(dtype).eps


@pytest.mark.parametrize("kind", KINDS)
def test_norm_bound_bounds_all_higher_powers(kind, generator):
    a = matrices(kind, 5, 12, generator) * 3
    bound = float(norm_bound(a))
    power = torch.linalg.matrix_power(a, 11)
    for n in range(12, 18):
        power = power @ a
        assert float(torch.linalg.matrix_norm(power, 2).max()) <= bound**n * (1 + 1e-9)


def test_infinite_generators_are_refused():
    with pytest.raises(DivergenceError, match="norm"):
        expm_action(torch.full((1, 2, 2), math.inf), torch.ones(1, 2, 1), torch.ones(1, 1))
