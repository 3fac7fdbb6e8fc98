"""A transport's exponentials in one kernel against the eager ones in double precision: values and gradients."""

import json

import pytest
import torch

from interpreted import interpreted, needs_triton, relative_error
from thetafield.geometry.expm import expm_action

CASES = {
    f"r={r} m={m} c={c} norm={norm}": (r, m, c, norm)
    for r, m, c, norm in [(1, 32, 6, 1.0), (2, 32, 6, 0.1), (3, 16, 20, 1.0), (2, 16, 3, 8.0)]
}


def eager(matrices, vectors, scale):
    for number in range(matrices.shape[1]):
        vectors = expm_action(matrices[:, number], vectors, scale[..., number])
    return vectors


def measure():
    """Return the relative errors of values and gradients, case by case: what the interpreter is run for."""
    from thetafield.geometry.expm_kernel import cascade

    errors = {}
    for name, (r, m, c, norm) in CASES.items():
        generator = torch.Generator().manual_seed(0)
        shapes = (3, r, m, m), (3, m, c), (3, c, r), (3, m, c)
        *given, pull = [torch.randn(shape, generator=generator) for shape in shapes]
        given[0] *= norm / m**0.5
        single = [value.clone().requires_grad_() for value in given]
        double = [value.double().requires_grad_() for value in given]
        got, expected = cascade(*single), eager(*double)
        got.backward(pull)
        expected.backward(pull.double())
        with torch.no_grad():
            answer = cascade(*single)
        pairs = [(got.detach(), expected.detach()), *((a.grad, b.grad) for a, b in zip(single, double, strict=True))]
        errors[name] = [relative_error(a, b) for a, b in [*pairs, (answer, expected.detach())]]
    with torch.no_grad():  # one vector for all columns, as a transport has it, and a norm beyond reason
        wide = cascade(given[0], given[1][:, :, :1].expand(-1, -1, 40), given[2][:, :1].expand(-1, 40, -1))
        errors["columns differ"] = float((wide - wide[..., :1]).abs().max())
        errors["too large"] = bool(cascade(1e4 * given[0], *given[1:]).isnan().all())
    return errors


@pytest.fixture(scope="module")
def errors():
    return interpreted(__file__)


@needs_triton
@pytest.mark.parametrize("case", CASES)
def test_kernel_equals_the_eager_action(case, errors):
    assert max(errors[case]) <= 1e-5, errors[case]


@needs_triton
def test_one_vector_serves_all_columns_and_what_is_too_large_is_no_number(errors):
    assert errors["columns differ"] == 0 and errors["too large"]


if __name__ == "__main__":
    print(json.dumps(measure()))
