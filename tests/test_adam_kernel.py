"""The update of a table's rows in one kernel against the eager one."""

import json

import pytest
import torch

from interpreted import interpreted, needs_triton
from thetafield.fields.rows import RowTable
from thetafield.methods.phase import Player
from thetafield.training.adam import EPS, PlayerAdam


def measure():
    """Return how far tables drift apart that both updates move along the same gradients."""
    from thetafield.training.adam_kernel import update

    stream = torch.Generator().manual_seed(0)
    start, target = torch.randn(2, 9, 700, generator=stream)
    eager, kernel = torch.nn.Parameter(start.clone()), start.clone()
    rows = RowTable(eager)
    adam = PlayerAdam(Player(lambda _: {}, [], 0.05, 1e-2, tables=(rows,)), torch.device("cpu"))
    first, second, updates = torch.zeros_like(kernel), torch.zeros_like(kernel), torch.zeros(9)
    for _ in range(12):
        index = torch.randint(9, (5,), generator=stream)  # some rows come twice, some never
        adam.update((rows.take(index) - target[index]).square().sum(), torch.tensor(1.0, dtype=torch.float64))
        gradient = 2 * (kernel[index] - target[index])
        state = (kernel, first, second, updates)
        update(*state, index, gradient, torch.tensor(0.05), 1e-2, (0.9, 0.999), EPS)
    return {
        "apart": float((eager.detach() - kernel).abs().max()),
        "moved": float((kernel - start).abs().max()),
        "updates": float((adam.rows[0].updates - updates).abs().max()),
    }


@pytest.fixture(scope="module")
def drift():
    return interpreted(__file__)


@needs_triton
def test_kernel_moves_rows_as_the_eager_update_does(drift):
    assert drift["apart"] <= 5e-6 and drift["moved"] > 0.3 and drift["updates"] == 0


if __name__ == "__main__":
    print(json.dumps(measure()))
