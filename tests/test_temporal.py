"""Methods along one ordered coordinate: their losses against plain loops, their fields, and times that are odd."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from plain import assert_same, body, head, sample_loss
from thetafield import FieldClassifier, FieldRegressor
from thetafield.errors import NeedError
from thetafield.geometry.flow import LinearFlow, NeuralFlow
from thetafield.methods import METHODS
from thetafield.testing.toys import make_method, toy_problem
from thetafield.training import fit

F = nn.functional
TEMPORAL = [name for name, entry in METHODS if entry.needs.ordered]
both = pytest.mark.parametrize("regression", [False, True])


def in_time(problem):
    return torch.argsort(problem.domains.z[:, 0], stable=True).tolist()


# Flows


@pytest.mark.parametrize("kind", ["linear", "skew", "low-rank"])
def test_linear_flow_equals_the_dense_exponential(kind):
    torch.manual_seed(0)
    flow = LinearFlow(6, kind).double()
    latent, times = torch.randn(4, 6, dtype=torch.float64), torch.linspace(-3, 9, 12, dtype=torch.float64).view(4, 3)
    parameters = [*flow.parameters()]
    dense = torch.stack(
        [
            torch.stack([torch.linalg.matrix_exp(t * flow.generator) @ e for t in row])
            for e, row in zip(latent, times, strict=True)
        ]
    )
    flow.adopt(flow.measure(times))
    for mode in (True, False):
        flow.train(mode)
        carried = flow(latent, times)
        torch.testing.assert_close(carried, dense, rtol=1e-9, atol=1e-11)
        fast = torch.autograd.grad(carried.square().sum(), parameters, retain_graph=True)
        slow = torch.autograd.grad(dense.square().sum(), parameters, retain_graph=True)
        for a, b in zip(fast, slow, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


def test_runge_kutta_is_of_fourth_order_and_equals_the_exponential_of_a_linear_net():
    torch.manual_seed(1)
    flow = NeuralFlow(3, 3).double()
    matrix = torch.randn(3, 3, dtype=torch.float64) / 4
    flow.net = nn.Sequential(nn.Linear(3, 3, bias=False).double())
    flow.net[0].weight.data.copy_(matrix)
    latent, times = torch.randn(2, 3, dtype=torch.float64), torch.tensor([[0.0, 1.0, 2.5], [0.5, 0.5, 2.0]]).double()
    exact = torch.stack(
        [torch.stack([torch.linalg.matrix_exp(t * matrix) @ e for t in r]) for e, r in zip(latent, times, strict=True)]
    )
    errors = []
    for step in (0.2, 0.1):
        flow.step = step
        errors.append(float((flow(latent, times) - exact).abs().max().detach()))
    assert errors[0] < 1e-4
    assert 10 < errors[0] / errors[1] < 25  # halving the step divides the error by about sixteen


def test_neural_flow_carries_each_latent_as_if_alone():
    torch.manual_seed(2)
    flow = NeuralFlow(4, 8).double().eval()
    latent, times = torch.randn(3, 4, dtype=torch.float64), torch.tensor([[0.0, 1.0], [0.0, 7.3], [0.0, 0.1]]).double()
    together = flow(latent, times)
    for i in range(3):
        torch.testing.assert_close(flow(latent[i : i + 1], times[i : i + 1])[0], together[i], rtol=1e-12, atol=1e-12)
    assert torch.isnan(flow(latent, times + 1e6)).all()  # not hours of work
    torch.testing.assert_close(together[:, 0], latent)


# Koodos


def flow_by_hand(field, latent, span, count):
    if isinstance(field.flow, LinearFlow):
        return torch.linalg.matrix_exp(span * field.flow.generator) @ latent
    net, step = field.flow.net, span / count
    for _ in range(count):
        a = net(latent)
        b = net(latent + step / 2 * a)
        c = net(latent + step / 2 * b)
        d = net(latent + step * c)
        latent = latent + step / 6 * (a + 2 * b + 2 * c + d)
    return latent


@both
@pytest.mark.parametrize("dynamics", ["linear", "skew", "neural"])
def test_koodos_loss(regression, dynamics):
    problem = toy_problem(regression=regression, ordered=True)
    method = make_method(
        "koodos", problem, dynamics=dynamics, risk=0.7, consistency=3.0, embedding=2.0, segment=3, block=2, samples=0
    )
    field, order = method.learned, in_time(problem)
    times = field.anchors[:, 0] * 5
    batch = next(iter(method.phases()[0].batches(0)))
    places = [batch.rows[row].tolist() for row in batch.member]
    lengths = (batch.weight > 0).sum(1).tolist()
    names = ("own risk", "carried risk", "reconstruction", "embedding", "consistency")
    totals = dict.fromkeys(names, 0.0)
    for row, length in zip(places, lengths, strict=True):
        start, e = row[0], field.coder.encode(field.theta[row[0]][None])[0]
        previous = start
        for j in row[:length]:
            domain = problem.domains.select([order[j]])
            if dynamics == "neural":  # interval by interval, each in the steps that it needs
                gap = times[j] - times[previous]
                e = flow_by_hand(field, e, gap, max(1, math.ceil(float(gap) / 0.2 - 1e-6)))
                moved = e
            else:
                moved = flow_by_hand(field, e, times[j] - times[start], 0)
            previous = j
            theta, carried = field.theta[j], field.coder.decode(moved[None])[0]
            code = field.coder.encode(theta[None])[0]
            share = 1 / (length * len(places))
            totals["own risk"] += 0.7 * share * sample_loss(method, head(method, theta, domain.x), domain.y)
            totals["carried risk"] += 0.7 * share * sample_loss(method, head(method, carried, domain.x), domain.y)
            totals["reconstruction"] += 3 * share * (theta - field.coder.decode(code[None])[0]).square().mean()
            totals["embedding"] += 2 * share * (code - moved).square().mean()
            totals["consistency"] += 3 * share * (theta - carried).square().mean()
    assert_same(method.loss(batch), totals, method.phases()[0].players[0].parameters)


def test_koodos_segments_begin_at_every_domain_and_the_last_ones_only_judge():
    problem = toy_problem(ordered=True, num_domains=12, sizes=(4,))
    method = make_method("koodos", problem, segment=5, block=4, validation=3)
    (phase,) = method.phases()
    starts = sorted(int(batch.rows[s]) for batch in phase.batches(0) for s in batch.start)
    assert starts == list(range(9)) and phase.steps_per_epoch == 3
    judged = method.segments(torch.arange(9, 12), 0)
    assert judged.rows[judged.member].tolist() == [[9, 10, 11, 11, 11], [10, 11, 11, 11, 11], [11] * 5]
    torch.testing.assert_close(judged.weight.sum(1), torch.ones(3, dtype=torch.float64))
    assert phase.keep == "best" and phase.judge_from == 0.8
    torch.testing.assert_close(phase.judge(), sum(method.loss(judged).values()))


def test_koodos_heads_start_apart_with_a_step_size_of_their_own():
    method = make_method("koodos", toy_problem(ordered=True), head_lr=1e-2, lr=1e-3)
    assert len(torch.unique(method.learned.theta, dim=0)) == 6
    (player,) = method.phases()[0].players
    assert player.parameters[0] is method.learned.theta
    assert player.rates[0] == pytest.approx(10) and set(player.rates[1:]) == {1.0}
    shared = make_method("koodos", toy_problem(ordered=True), start="shared")
    assert len(torch.unique(shared.learned.theta, dim=0)) == 1


def test_koodos_answers_from_the_latest_domain_not_after_z():
    problem = toy_problem(ordered=True)
    field = make_method("koodos", problem).field().eval()
    times = field.anchors[:, 0]
    for z in (times[2] + 1e-3, times[5] + 0.7, times[0] - 0.2):
        source = max(0, int((times <= z).sum()) - 1)
        latent = field.coder.encode(field.theta[source][None])[0]
        moved = torch.linalg.matrix_exp((z - times[source]) * 5 * field.flow.generator) @ latent
        expected = field.coder.decode(moved[None])[0]
        torch.testing.assert_close(field(z.view(1, 1))[0], expected, rtol=1e-9, atol=1e-11)


def test_the_best_epoch_by_the_judge_is_kept():
    method = make_method("koodos", toy_problem(ordered=True), epochs=10)
    seen, kept = [], []
    phase = method.phases()[0]
    script = iter([5.0, 1.0])  # asked after the last fifth of the epochs only: the ninth and the tenth

    def judge():
        seen.append(next(script))
        kept.append(method.learned.theta.detach().clone())
        return torch.tensor(seen[-1])

    method.phases = lambda: [replace(phase, judge=judge)]
    fit(method)
    assert seen == [5.0, 1.0] and torch.equal(method.learned.theta, kept[1])
    script = iter([1.0, 5.0])
    fit(method)
    assert torch.equal(method.learned.theta, kept[2])


# DRAIN


def lstm_by_hand(cell, given, state, memory):
    gates = given @ cell.weight_ih.T + cell.bias_ih + state @ cell.weight_hh.T + cell.bias_hh
    i, f, g, o = gates.chunk(4)
    memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(memory), memory


@both
def test_drain_loss(regression):
    problem = toy_problem(regression=regression, ordered=True)
    method = make_method("drain", problem, epochs=2, batch=3)
    (phase,) = method.phases()
    (player,) = phase.players
    state = memory = theta = None
    for batch in [*phase.batches(0), *phase.batches(2)]:
        if theta is None:
            given, state, memory = (torch.tanh(part[0](method.noise[0])) for part in method.beginning)
        else:
            given = method.encoder(theta)
        state, memory = lstm_by_hand(method.cell, given, state, memory)
        theta = method.decoder(state)
        there = batch.samples.weight[0] > 0
        risk = sample_loss(method, head(method, theta, batch.samples.x[0, there]), batch.samples.y[0, there])
        assert_same(method.loss(batch), {"risk": risk}, player.parameters)
        state, memory, theta = state.detach(), memory.detach(), theta.detach()
        torch.testing.assert_close(method.learned.theta[batch.place[0]], theta)
    given = method.encoder(theta)
    state, memory = lstm_by_hand(method.cell, given, state, memory)
    torch.testing.assert_close(method.field().theta[-1], method.decoder(state))


def test_drain_visits_domains_in_order_with_all_their_samples():
    problem = toy_problem(ordered=True)
    method = make_method("drain", problem, epochs=2, batch=4)
    order, sizes = in_time(problem), problem.domains.sizes.tolist()
    (phase,) = method.phases()
    batches = iter([batch for epoch in range(phase.epochs) for batch in phase.batches(epoch)])
    for number in range(12):
        place = order[number // 2]
        part = [next(batches) for _ in range(-(-sizes[place] // 4))]
        assert {int(b.samples.index) for b in part} == {place}
        assert {int(b.place) for b in part} == {number // 2}
        seen = torch.cat([b.samples.x[0, b.samples.weight[0] > 0] for b in part])
        assert all(float(b.samples.weight.sum()) == pytest.approx(1) for b in part)
        assert len(seen) == sizes[place]
        assert set(map(tuple, seen.tolist())) == set(map(tuple, problem.domains.select([place]).x.tolist()))
    assert next(batches, None) is None


def test_drain_begins_anew_in_a_second_training():
    method = make_method("drain", toy_problem(ordered=True), epochs=1, batch=4)
    fit(method)
    (phase,) = method.phases()
    phase.begin()
    batch = next(iter(phase.batches(0)))
    given, state, memory = (torch.tanh(part[0](method.noise[0])) for part in method.beginning)
    state, memory = lstm_by_hand(method.cell, given, state, memory)
    method.loss(batch)
    torch.testing.assert_close(method.generated[0], method.decoder(state))


def test_drain_takes_more_epochs_for_numbers():
    assert make_method("drain", toy_problem(ordered=True), epochs=None).epochs == 20
    assert make_method("drain", toy_problem(ordered=True, regression=True), epochs=None).epochs == 60


# TKNets


def measure_by_hand(values):
    """G of five features: none squared or cubed (5 // 8 = 0), one exponentiated, the rest unchanged."""
    bounded = 3 * torch.tanh(values / 3)
    return torch.cat([bounded[:1].exp(), bounded[1:]])


def test_tknets_loss():
    problem = toy_problem(ordered=True)
    method = make_method("tknets", problem, samples=6)
    order = in_time(problem)
    batch = next(iter(method.phases()[0].batches(0)))
    total, used = 0.0, 0
    for before, after in pairwise(order):
        support, labels = batch.x[before], batch.y[before].tolist()
        if set(labels) != {0, 1}:
            continue
        used += 1
        prototypes = []
        for k in (0, 1):
            rows = [body(method, method.head, x[None])[0] for x, y in zip(support, labels, strict=True) if y == k]
            prototypes.append(sum(measure_by_hand(method.koopman(row)) for row in rows) / len(rows))
        losses = []
        for x, y in zip(batch.x[after], batch.y[after].tolist(), strict=True):
            query = measure_by_hand(body(method, method.head, x[None])[0])
            scores = torch.stack([-(query - p).square().sum() for p in prototypes])
            losses.append(-torch.log_softmax(scores, 0)[y])
        total = total + sum(losses) / len(losses)
    assert used >= 3
    assert_same(method.loss(batch), {"risk": total}, method.phases()[0].players[0].parameters)


def test_tknets_field_predicts_by_the_nearest_prototype():
    problem = toy_problem(ordered=True, sizes=(9,))
    method = make_method("tknets", problem)
    fit(method)
    field, order = method.field(), in_time(problem)
    x = torch.randn(7, 3, dtype=torch.float64)
    z = torch.tensor([[2.0], [float(problem.domains.z[order[3], 0])]], dtype=torch.float64)
    logits = method.predictor(field(z), x.expand(2, -1, -1))
    for row, place in enumerate((5, 2)):  # the last domain speaks for the future, the one before for its successor
        domain = problem.domains.select([order[place]])
        for n, sample in enumerate(x):
            query = measure_by_hand(body(method, method.head, sample[None])[0])
            distances = []
            for k in (0, 1):
                members = domain.x[domain.y == k]
                rows = [measure_by_hand(method.koopman(body(method, method.head, m[None])[0])) for m in members]
                distances.append((query - sum(rows) / len(rows)).square().sum())
            expected = torch.softmax(-torch.stack(distances), 0)
            torch.testing.assert_close(torch.softmax(logits[row, n], 0), expected, rtol=1e-7, atol=1e-9)


def classes_of(problem, labels):
    """The same problem with the labels of each domain replaced, in the order of time."""
    order = in_time(problem)
    y = problem.domains.y.clone()
    for place, value in labels.items():
        start, end = problem.domains.offsets[order[place] : order[place] + 2].tolist()
        y[start:end] = value
    return replace(problem, domains=replace(problem.domains, y=y))


def test_tknets_leaves_out_pairs_whose_support_lacks_a_class():
    problem = classes_of(toy_problem(ordered=True, sizes=(9,)), {0: 1, 1: 1, 3: 0})
    method = make_method("tknets", problem, samples=40)
    batch, order = next(iter(method.phases()[0].batches(0))), in_time(problem)
    before = method.loss(batch)["risk"]
    assert before > 0
    # Domain 1 is the query of a left-out pair and the support of another, domain 5 the query of a whole one.
    for place, counts in ((1, False), (5, True)):
        moved = replace(batch, x=batch.x.index_fill(0, torch.tensor([order[place]]), 0.5))
        assert torch.equal(method.loss(moved)["risk"], before) != counts


def test_tknets_keeps_the_latest_prototype_of_a_class_that_a_domain_lacks():
    problem = toy_problem(ordered=True, sizes=(9,))
    lacking = make_method("tknets", classes_of(problem, {5: 0}))
    whole = make_method("tknets", problem)
    torch.testing.assert_close(lacking.prototypes()[5, 1], whole.prototypes()[4, 1])
    early = make_method("tknets", classes_of(problem, {0: 0}))
    torch.testing.assert_close(early.prototypes()[0, 1], whole.prototypes()[1, 1])


def test_tknets_refuses_what_can_never_train():
    problem = toy_problem(ordered=True, sizes=(9,))
    with pytest.raises(NeedError, match="the training domains hold none of: 1"):
        make_method("tknets", classes_of(problem, dict.fromkeys(range(6), 0)))
    with pytest.raises(NeedError, match="other than the last, with samples of every class"):
        make_method("tknets", classes_of(problem, {0: 0, 1: 1, 2: 0, 3: 1, 4: 0}))


# What all of them owe


@pytest.mark.parametrize("name", TEMPORAL)
def test_the_order_of_the_rows_does_not_matter(name):
    """Domains given in any order are taken in the order of their times: every loss term and draw is the same."""
    problems = [toy_problem(ordered=True, sizes=(9,), order=given) for given in (None, [3, 1, 5, 0, 4, 2])]
    losses = []
    for problem in problems:
        method = make_method(name, problem, samples=0) if name == "koodos" else make_method(name, problem)
        batch = next(iter(method.phases()[0].batches(0)))
        if name == "tknets":  # its batch is drawn by number: give both the same samples
            batch = problem.domains.padded(torch.arange(6))
        losses.append(method.loss(batch))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TEMPORAL)
def test_tied_times_keep_their_order(name):
    problem = toy_problem(ordered=True, sizes=(9,))
    z = problem.domains.z.clone()
    order = in_time(problem)
    z[order[3]] = z[order[2]]
    tied = replace(problem, domains=replace(problem.domains, z=z))
    method = make_method(name, tied)
    fit(method)
    assert torch.isfinite(method.field()(torch.linspace(-0.2, 1.4, 9, dtype=torch.float64)[:, None])).all()
    expected = sorted(range(6), key=lambda i: (float(z[i, 0]), i))
    assert list(map(int, method.order)) == expected


@pytest.mark.parametrize("name", TEMPORAL)
def test_estimators_take_temporal_methods(name, tmp_path):
    stream = np.random.default_rng(0)
    time = np.repeat(np.arange(8.0), 30)
    X = stream.normal(size=(240, 2))
    signal = X[:, 0] * np.cos(time / 4) + X[:, 1] * np.sin(time / 4)
    options = {
        "koodos": {"epochs": 5, "widths": (16,), "latent_dim": 4},
        "drain": {"epochs": 1},
        "tknets": {"steps": 20},
    }
    est = FieldClassifier(name, options=options[name], random_state=0).fit(X, signal > 0, z=time)
    assert est.predict(X, z=9.0).shape == (240,)
    est.save(tmp_path / "field")
    from thetafield import load_field

    np.testing.assert_allclose(load_field(tmp_path / "field").predict_proba(X, z=9.0), est.predict_proba(X, z=9.0))
    model = est.model_at(9.0)
    shown = torch.softmax(model(torch.from_numpy(X).float()), 1).detach().numpy()
    np.testing.assert_allclose(shown, est.predict_proba(X, z=9.0), atol=1e-4)
    if METHODS[name].needs.classification:
        with pytest.raises(NeedError, match="needs classes, but the target of the data is a number"):
            FieldRegressor(name, options=options[name]).fit(X, signal, z=time)
    else:
        FieldRegressor(name, options=options[name], random_state=0).fit(X, signal, z=time).predict(X, z=3.5)
