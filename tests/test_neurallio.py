"""The vectorised step against nested loops with dense exponentials: values, gradients, and a whole epoch."""

import pytest
import torch

from thetafield.fields.rows import RowTable
from thetafield.methods.phase import Player
from thetafield.testing.oracles import loop_loss
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training.adam import PlayerAdam


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
@pytest.mark.parametrize("num_domains", [6, 17])
def test_step_equals_nested_loops(num_domains, options, regression):
    """Seventeen domains are more than a block's charts hold, and no whole number of blocks."""
    problem = toy_problem(regression=regression, num_domains=num_domains)
    method = make_method("neurallio-paper", problem, **({"block": 4} | options))
    (phase,) = method.phases()
    assert method.shared == (num_domains == 6)
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


@pytest.mark.parametrize("num_domains", [6, 17])
def test_blocks_cover_every_anchor_once(num_domains):
    method = make_method("neurallio-paper", toy_problem(num_domains=num_domains), block=4, shuffle=True)
    (phase,) = method.phases()
    for epoch in range(3):
        batches = list(phase.batches(epoch))
        anchors = torch.cat([b.support.index[b.anchor][b.weight > 0] for b in batches])
        assert sorted(anchors.tolist()) == list(range(num_domains))
        for batch in batches:
            assert torch.equal(batch.target[:, 0], batch.anchor)
            filling = batch.support.index[batch.anchor][batch.weight == 0]
            assert set(filling.tolist()) <= set(batch.support.index[batch.anchor][batch.weight > 0].tolist())


def test_rows_taken_in_every_step_are_updated_as_a_whole_table_is():
    """Lazy updates of all rows are plain Adam; the order of the rows and their repetition do not matter."""
    target = torch.randn(5, 3, dtype=torch.float64)
    tables = [torch.nn.Parameter(torch.zeros(5, 3, dtype=torch.float64)) for _ in range(2)]
    rows = RowTable(tables[0])
    index = torch.tensor([4, 1, 0, 2, 3, 1, 1])
    share = torch.tensor([1, 1 / 3, 1, 1, 1, 1 / 3, 1 / 3], dtype=torch.float64)[:, None]
    players = [
        Player(lambda _: {}, [], 0.05, 1e-2, tables=(rows,)),
        Player(lambda _: {}, [tables[1]], 0.05, 1e-2),
    ]
    lazy, plain = (PlayerAdam(player, torch.device("cpu")) for player in players)
    factor = torch.tensor(0.5, dtype=torch.float64)
    for _ in range(20):
        lazy.update((share * (rows.take(index) - target[index]).square()).sum(), factor)
        plain.update((tables[1] - target).square().sum(), factor)
    torch.testing.assert_close(tables[0], tables[1], rtol=1e-12, atol=1e-14)


def test_rows_that_are_not_taken_stay_as_they_are():
    """Row by row, a table's rows follow Adams of their own that only count the steps in which the row was taken."""
    stream = torch.Generator().manual_seed(0)
    table = torch.nn.Parameter(torch.randn(6, 3, dtype=torch.float64, generator=stream))
    alone = [torch.nn.Parameter(row.detach().clone()) for row in table]
    adams = [torch.optim.Adam([row], lr=0.05, weight_decay=1e-2) for row in alone]
    rows = RowTable(table)
    lazy = PlayerAdam(Player(lambda _: {}, [], 0.05, 1e-2, tables=(rows,)), torch.device("cpu"))
    for _ in range(30):
        index = torch.randperm(6, generator=stream)[:2]
        untouched = [i for i in range(6) if i not in index.tolist()]
        before = table.detach()[untouched].clone()
        lazy.update((rows.take(index) - 1).pow(4).sum(), torch.tensor(1.0, dtype=torch.float64))
        assert torch.equal(table.detach()[untouched], before)
        for i in index.tolist():
            adams[i].zero_grad()
            (alone[i] - 1).pow(4).sum().backward()
            adams[i].step()
    torch.testing.assert_close(table.detach(), torch.stack(alone).detach(), rtol=1e-10, atol=1e-12)
