"""The vectorised step against nested loops with dense exponentials: values, gradients, and a whole epoch."""

import pytest
import torch

from thetafield.testing.methods import make_method, toy_problem
from thetafield.testing.oracles import loop_loss


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gate": True},
        {"num_generators": 3},
        {"block": 2, "shuffle": True},
        {"samples": 0, "block": 4},
        {"charts": False},
        {"generators": "commuting"},
    ],
)
def test_step_equals_nested_loops(options, regression):
    method = make_method("neurallio-paper", toy_problem(regression=regression), **options)
    (phase,) = method.phases()
    for batch in phase.batches(1):
        fast, slow = method.loss(batch), loop_loss(method, batch)
        assert list(fast) == list(slow)
        for name in fast:
            torch.testing.assert_close(fast[name], slow[name], rtol=1e-10, atol=1e-12)
            for a, b in zip(gradients(fast[name], phase), gradients(slow[name], phase), strict=True):
                torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


def gradients(value, phase):
    found = torch.autograd.grad(value, phase.parameters, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, phase.parameters, strict=True)]


def test_an_epoch_equals_the_loop():
    """The same algorithm, optimiser included, ends at the same parameters."""
    ends = []
    for loss in (None, loop_loss):
        method = make_method("neurallio-paper", toy_problem(), block=2)
        (phase,) = method.phases()
        (player,) = phase.players
        optimiser = torch.optim.Adam(player.parameters, lr=player.lr, weight_decay=player.weight_decay)
        for epoch in range(2):
            for batch in phase.batches(epoch):
                terms = method.loss(batch) if loss is None else loss(method, batch)
                optimiser.zero_grad()
                torch.stack(list(terms.values())).sum().backward()
                optimiser.step()
        ends.append(method.state_dict())
    for name in ends[0]:
        torch.testing.assert_close(ends[0][name], ends[1][name], rtol=1e-6, atol=1e-8)


def test_all_heads_start_from_one_vector():
    method = make_method("neurallio-paper", toy_problem())
    assert torch.equal(method.learned.theta, method.predictor.start.expand(6, -1))


def test_blocks_cover_every_anchor_once():
    method = make_method("neurallio-paper", toy_problem(), block=4, shuffle=True)
    for epoch in range(3):
        anchors = torch.cat([b.support.index[b.anchor] for b in method.batches(epoch)])
        assert sorted(anchors.tolist()) == list(range(6))
        for batch in method.batches(epoch):
            assert torch.equal(batch.target[:, 0], batch.anchor)
            assert len(set(batch.support.index.tolist())) == len(batch.support.index)
